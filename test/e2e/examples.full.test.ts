// Every example of every help text, run against a real `svc3 dev` whose VMs are simulated, in the order below: what one
// leaves behind is what the next one finds. An example that is not named here runs at the end as it stands, and has to
// succeed. Commands that serve or change this machine (dev, server, agent) are parsed and not run; ssh is a stand-in.
import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { pagesOf } from '../../scripts/reference/pages.ts'
import { tour } from '../../src/cli/line/help.ts'
import { type DevServer, makeFolder, program, root, startDev } from '../support/processes/dev-server.ts'
import { run } from '../support/rigs/cli-host.ts'
import { makePair } from '../support/tools/certificates.ts'
import { randomDisc } from '../support/tools/disc.ts'
import { eventually } from '../support/tools/eventually.ts'
import { exampleWords } from '../support/tools/example-words.ts'

interface How {
  /** Lines before it, which make what it needs. */
  readonly given?: readonly string[]
  readonly exit?: number
  /** It is called again until it ends so. */
  readonly isRepeated?: true
  /** Ctrl-C is pressed when this has been written, to either stream. */
  readonly until?: RegExp
  /** What it says on stderr. */
  readonly said?: RegExp
  /** What the guest that the doctor looks into says on its console: simulated ones run no first-boot script. */
  readonly guest?: string
  /** What it prints. */
  readonly printed?: RegExp
  /** What the test types at its prompts. */
  readonly typed?: string
  /** Words of it that stand for others here. */
  readonly as?: Readonly<Record<string, string>>
}

const idle = { as: { sonoma: 'tiny-arm64' } }
const saved: How = { given: ['vm deploy apple -i sonoma-ci'], as: { demo: 'apple', 'demo-tools': 'apple-tools' } }
/** An address of this machine on which no server listens. */
const runners: How = { as: { ios: 'ios-build' } }
const onMac: How = { exit: 1, said: /This is not a Mac with Apple silicon/ }
const login: How = { until: /Press Ctrl-C to cancel/, exit: 130 }

const plan: Readonly<Record<string, How>> = {
  'svc3 namespace create svc-ios': {},
  'svc3 namespace list': { given: ['namespace create svc-tv'] },
  'svc3 image upload disk.qcow2': {},
  'svc3 image upload disk.qcow2 --name sonoma --type arm64': {},
  'svc3 image create-macos ghcr.io/acme/macos:27 --ipsw latest --unattended': onMac,
  'svc3 image create-macos ghcr.io/acme/macos:15 --ipsw mac.ipsw --disk 120': onMac,
  'svc3 image list tiny-arm64 -o wide': {},
  'svc3 image download sonoma': {},
  'svc3 image copy sonoma sonoma-ci': {},
  'svc3 image copy sonoma sonoma-ci -d Nightly': { given: ['image delete sonoma-ci', 'image copy sonoma sonoma-idle'] },
  'svc3 iso upload ventura.iso': {},
  'svc3 iso upload ventura.iso --name installer.iso': {},
  'svc3 iso copy ventura.iso installer.iso': { given: ['iso delete installer.iso'] },
  'svc3 iso copy ventura.iso installer.iso -d Nightly': { given: ['iso delete installer.iso'] },
  'svc3 iso download ventura.iso': { as: { 'ventura.iso': 'installer.iso' } },
  'svc3 vm-config create ios-build -i sonoma -c 4 -m 8 --tag ios': {},
  'svc3 vm-config update ios-build -i sequoia -c 6': { as: { sequoia: 'sonoma' } },
  'svc3 vm-config list -o wide': {},
  'svc3 pool create ios --config ios-build --min-idle 2 --max-idle 4': {},
  'svc3 pool create ios --config ios-build --schedule "0 7 * * mon-fri Europe/Berlin=4" --schedule "0 19 * * * Europe/Berlin=0"':
    { as: { ios: 'by-day' } },
  'svc3 pool create linux --config linux-build --min-idle 20 --state memory': { as: { 'linux-build': 'ios-build' } },
  'svc3 pool create ios --config ios-build --ready-command "test -e /var/run/build-agent.ready"': {
    as: { ios: 'by-command' },
  },
  'svc3 pool describe ios': {},
  'svc3 runner-pool create ios --url https://github.com/acme --config ios --app-id 12 --installation-id 34 --private-key acme.pem':
    { as: { ...runners.as, 'https://github.com/acme': 'http://127.0.0.1:1/acme' } },
  'svc3 runner-pool create ios --url https://github.com/acme/app --config ios --token-stdin --min-idle 1 < token.txt': {
    given: ['vm-config create ios-tv -i sonoma'],
    as: { ios: 'ios-tv', 'https://github.com/acme/app': 'http://127.0.0.1:1/acme/app' },
  },
  'svc3 runner-pool create mac --url https://github.com/acme --config ios --ssh-user ci --ssh-key ci.pem --token-stdin < token.txt':
    { as: { ...runners.as, 'https://github.com/acme': 'http://127.0.0.1:1/acme', 'ci.pem': 'acme.pem' } },
  'svc3 runner-pool describe ios': runners,
  'svc3 runner-pool jobs ios -o wide': runners,
  // It reports that the host does not answer, once the server has tried.
  'svc3 runner-pool doctor ios': { ...runners, exit: 1, isRepeated: true },
  'svc3 runner-pool doctor ios --try': {
    ...runners,
    exit: 1,
    guest: 'svc3-check folder no\nsvc3-check end\n',
    printed: /Folder \/opt\/actions-runner is missing/,
  },
  'svc3 runner-pool update ios --max 12': runners,
  'svc3 runner-pool update ios --token-stdin < token.txt': runners,
  'svc3 runner-pool pause ios': runners,
  'svc3 runner-pool update ios --resume': runners,
  'svc3 runner-pool drain ios': runners,
  'svc3 runner-pool delete ios': runners,
  'svc3 vm deploy demo -i tiny-amd64': { given: ['vm deploy mine -i tiny-amd64 --label team=ios'] },
  'svc3 vm deploy ci --generate-name --config ios-build --ttl 2h': {},
  'svc3 vm list --owner me --label team=ios --watch': { until: /mine/, exit: 130 },
  'svc3 vm vnc demo': { until: /vnc:\/\/127/, exit: 130 },
  'svc3 vm logs demo --tail 20 --follow': { until: /demo is up/, exit: 130 },
  'svc3 vm stop demo': {},
  'svc3 vm start demo': {},
  'svc3 vm suspend demo': {},
  'svc3 vm resume demo': {},
  'svc3 vm label demo team=ios': {},
  'svc3 vm label demo team=web --overwrite': {},
  'svc3 vm label demo stage=test team-': {},
  'svc3 vm extend demo 2h --yes': {},
  'svc3 vm extend demo 2h': {},
  // No host has room for the largest disks of all examples.
  'svc3 vm resize demo 120': { as: { '120': '11' } },
  // The guest never accepts the password, so the agent keeps trying: Ctrl-C ends the waiting, not the work.
  'svc3 vm resize demo 120 -u admin --password-stdin < password.txt': {
    as: { demo: 'mine', '120': '11' },
    until: /VM mine: /,
    exit: 130,
    said: /the resize continues\nsvc3: To follow it: svc3 vm show mine/,
  },
  'svc3 vm delete ci-1 ci-2 ci-3 -n svc-ios': {
    given: ['1', '2', '3'].map((number) => `vm deploy ci-${number} -i tiny-arm64 --no-wait -n svc-ios`),
  },
  'svc3 vm save demo demo-tools -d Tools --wait': saved,
  'svc3 vm save demo demo-tools -d "With tools" --wait': saved,
  'svc3 vm commit demo -d Tools --wait': { as: { demo: 'apple' } },
  'svc3 vm commit demo -d "With tools" --wait': { as: { demo: 'apple' } },
  'svc3 image restore sonoma --version 2': { as: { sonoma: 'sonoma-ci', '2': '1' } },
  'svc3 vm commit demo': { as: { demo: 'apple' } },
  // No server listens there, so nothing leaves this machine.
  'svc3 vm push demo ghcr.io/acme/ios/sonoma:1.2': {
    given: ['vm deploy pear -i sonoma-ci', 'regcred add http://127.0.0.1:1 -u ci -p secret --allow-insecure'],
    as: { demo: 'pear', 'ghcr.io/acme/ios/sonoma:1.2': '127.0.0.1:1/acme/sonoma:1.2' },
  },
  'svc3 vm push demo ghcr.io/acme/ios/sonoma --wait': {
    given: ['vm deploy plum -i sonoma-ci'],
    as: { demo: 'plum', 'ghcr.io/acme/ios/sonoma': '127.0.0.1:1/acme/sonoma' },
    until: /./,
    exit: 130,
  },
  'svc3 vm get-push-status vm-push-4k2vx -o wide': { exit: 5 },
  'svc3 vm cancel-push vm-push-4k2vx': { exit: 5 },
  'svc3 image generate empty 120G --firmware uefi': { as: { empty: 'empty-uefi' } },
  'svc3 image generate sonoma 120G --os macos': { as: { sonoma: 'sonoma-empty' } },
  // No remote is configured here.
  'svc3 remote-image pull sonoma': { exit: 5 },
  'svc3 remote-image pull sonoma mine --wait': { exit: 5 },
  // Nor is anybody asked beyond this machine.
  'svc3 remote-image pull ghcr.io/team/sonoma:v1': {
    as: { 'ghcr.io/team/sonoma:v1': 'registry.invalid/team/sonoma:v1' },
    exit: 2,
  },
  'svc3 remote-iso pull ventura.iso': { exit: 5 },
  'svc3 remote-iso pull ventura.iso mine --wait': { exit: 5 },
  'svc3 migrate from http://10.221.188.20 --plan plan.json': { as: { 'http://10.221.188.20': 'backup' } },
  'svc3 migrate from plan.json --apply --passwords passwords.json': {},
  'svc3 migrate from http://10.221.188.20 --token-file token --check': { as: { 'http://10.221.188.20': 'backup' } },
  'svc3 migrate scan /var/log/nginx --summary': { as: { '/var/log/nginx': 'scripts/' } },
  'svc3 migrate scan . --strict -o sarif > legacy.sarif': { as: { '.': 'scripts/' } },
  'svc3 events --for vm/demo --watch': { until: /vms\/demo/, exit: 130 },
  'svc3 node namespace mini-arm-13 svc-ios': {},
  'svc3 node list mini-arm-13 -o wide': { given: ['node namespace mini-arm-13 svc-default -n svc-ios'] },
  'svc3 node show mini-arm-13': {},
  'svc3 node tag mini-arm-13 ios': {},
  // Not the image that VMs use: that stays where they are.
  'svc3 imagecache add sonoma --all --wait': idle,
  'svc3 ic add sonoma --nodes mini-arm-13,mini-arm-14': {
    as: { ...idle.as, 'mini-arm-13,mini-arm-14': 'mini-arm-13,sim-arm64-1' },
  },
  'svc3 ic add sonoma --tags ios': idle,
  'svc3 ic add ghcr.io/team/sonoma:v1 --all': {
    as: { 'ghcr.io/team/sonoma:v1': 'registry.invalid/team/sonoma:v1' },
    exit: 2,
  },
  'svc3 ic remove sonoma --nodes mini-arm-13': idle,
  'svc3 imagecache remove sonoma --all': { ...idle, given: ['imagecache add tiny-arm64 --all --wait'] },
  'svc3 node untag mini-arm-13 ios': {},
  'svc3 node cordon mini-arm-13': {},
  'svc3 node uncordon mini-arm-13': {},
  'svc3 node drain mini-arm-13 --wait': {},
  'svc3 node drain mini-arm-13 --delete-vms --wait': {},
  'svc3 node delete mini-arm-13': {},
  'svc3 regcred add https://ghcr.io --username ci-bot --password-stdin < token.txt': {},
  'printf %s "$TOKEN" | svc3 regcred add https://ghcr.io -u ci-bot --password-stdin --replace': { typed: 'token' },
  'svc3 regcred add http://10.0.0.7:5000 -u ci-bot --allow-insecure -n svc-ios': { typed: 'secret\r' },
  'svc3 regcred list https://ghcr.io -o wide': {},
  'svc3 serviceaccount create jenkins -n svc-ios': { given: ['sa create jenkins'] },
  'svc3 rb add-subject -u ana@example.com -s svc-ios:jenkins -n svc-tv': {},
  'svc3 rb remove-subject -u ana@example.com -s svc-ios:jenkins -n svc-tv': {},
  'svc3 sa list -n svc-ios': {},
  'svc3 serviceaccount token jenkins -n svc-ios': {},
  'svc3 events --for serviceaccount/jenkins -n svc-ios -o wide': {},
  'svc3 events --outcome Failed --since 24h': {},
  'svc3 events --since 7d --jsonl': {},
  'svc3 usage': {},
  'svc3 usage --from 2026-11-01 --csv': {},
  'svc3 login': login,
  'svc3 login --device': login,
  'svc3 login --force': login,
  'svc3 user logout': {},
  'svc3 user set-token - < token.txt': {},
  'svc3 config set --api-url https://svc3.example.com': {},
  'svc3 config set --ca ca.pem': {},
  'svc3 config use-context lab': { given: ['config set --api-url https://lab.example.com --context lab'] },
  // Its VMs are still there.
  'svc3 image delete sonoma': { as: { sonoma: 'sonoma-idle' } },
}

/** What takes away what others need. */
const last: readonly string[] = [
  'svc3 vm-config delete ios-build',
  'svc3 regcred remove https://ghcr.io',
  'svc3 regcred remove http://10.0.0.7:5000 -n svc-ios',
  'svc3 serviceaccount delete jenkins -n svc-ios',
  'svc3 vm delete demo',
  'svc3 vm delete --label team=ios --yes',
  'svc3 iso delete ventura.iso',
  'svc3 namespace delete svc-ios',
]

const every = [...new Set((await pagesOf()).flatMap(({ command }) => command?.examples.map(({ line }) => line) ?? []))]
const listed = [...Object.keys(plan), ...last]
const lines = [...Object.keys(plan), ...every.filter((line) => !listed.includes(line)), ...last].filter((line) =>
  every.includes(line),
)

let folder: string
let server: DevServer
let agent: ChildProcess | undefined
const greeters: net.Server[] = []

async function svc3(words: readonly string[], how: How & { readonly input?: string } = {}) {
  const over = new AbortController()
  const env = {
    SVC3_API_URL: server.apiUrl,
    SVC3_TOKEN: server.token,
    XDG_CONFIG_HOME: folder,
    PATH: `${folder}:${process.env.PATH}`,
  }
  return run(words, {
    env,
    workingDir: folder,
    checkout: folder,
    interruption: over.signal,
    input: how.typed ?? how.input ?? '',
    terminal: { stdin: how.typed?.endsWith('\r') ?? false },
    onWrite: ({ stdout, stderr }) => how.until?.test(stdout + stderr) && over.abort(),
    now: new Date(),
    inert: true,
  })
}

/** A guest that sends an SSH greeting: the ports of simulated guests lead nowhere. */
async function greetAt(host: string, port: number, greeting: string): Promise<void> {
  const greeter = net.createServer((socket) => socket.on('error', () => undefined).end(greeting))
  greeters.push(greeter)
  greeter.listen(port, host)
  await once(greeter, 'listening')
}

async function greetIn(name: string): Promise<void> {
  const [vm] = JSON.parse((await svc3(['vm', 'list', name, '-o', 'json'])).stdout)
  await greetAt(vm.ip, vm.ssh, 'SSH-2.0-stand-in\r\n')
  await greetAt(vm.ip, vm.vnc, 'RFB 003.008\n')
}

async function sayOnConsole(text: string): Promise<void> {
  await eventually(async () => {
    for await (const file of fs.glob('data/nodes/*/vms/*/console.log', { cwd: folder })) {
      const console = path.join(folder, file)
      if (/-doctor-\w+ is up/.test(await fs.readFile(console, 'utf8'))) return await fs.appendFile(console, text)
    }
    assert.fail('nobody has read the console of a VM of the doctor')
  })
}

before(async () => {
  folder = await makeFolder()
  const args = ['--driver', 'simulated', '--simulate', 'boot=20ms,stop=20ms', '--nodes', 'arm64=3,amd64=2']
  server = await startDev(path.join(folder, 'data'), { args })
  const { stdout: token } = await svc3(['node', 'join-token'])
  await fs.writeFile(path.join(folder, 'token.txt'), token)
  await fs.writeFile(path.join(folder, 'password.txt'), 'secret\n')
  await fs.writeFile(path.join(folder, 'ca.pem'), (await makePair({ isAuthority: true })).cert)
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  await fs.writeFile(path.join(folder, 'acme.pem'), privateKey.export({ type: 'pkcs8', format: 'pem' }))
  await fs.writeFile(path.join(folder, 'disk.qcow2'), Buffer.alloc(2 ** 20))
  await fs.writeFile(path.join(folder, 'ventura.iso'), randomDisc(2 ** 16))
  await fs.mkdir(path.join(folder, 'scripts'))
  await fs.mkdir(path.join(folder, 'backup'))
  await fs.writeFile(path.join(folder, 'backup/namespaces.json'), '[{"name":"orka-default"},{"name":"orka-moved"}]')
  await fs.writeFile(path.join(folder, 'passwords.json'), '{}')
  await fs.writeFile(path.join(folder, 'scripts/build.sh'), 'make\n')
  await fs.writeFile(path.join(folder, '.gitlab-ci.yml'), 'build: make\n')
  await fs.writeFile(path.join(folder, 'ssh'), '#!/bin/sh\necho "ssh $*"\n', { mode: 0o755 })
  // With fewer cores than those of the service, however many this machine has: VMs go there, and this one can be moved.
  const words =
    'agent --name mini-arm-13 --driver simulated --architecture arm64 --cpu 2 --join-token-file token.txt'.split(' ')
  agent = spawn(program, [...words, '-a', server.apiUrl, '--data', path.join(folder, 'agent')], {
    cwd: folder,
    stdio: 'ignore',
  })
  await eventually(async () => assert.match((await svc3(['node', 'list', 'mini-arm-13'])).stdout, /READY/))
})
after(async () => {
  if (agent && agent.exitCode === null && agent.signalCode === null) {
    const ended = once(agent, 'exit')
    agent.kill('SIGKILL')
    await ended
  }
  for (const greeter of greeters) greeter.close()
  await server?.[Symbol.asyncDispose]()
  await fs.rm(folder, { recursive: true, force: true })
})

/** The words after the program's name, and what is sent to its standard input. */
async function shellOf(line: string): Promise<{ words: string[]; input: string }> {
  const found = exampleWords(line)
  assert.ok(found, `"${line}" does not call svc3`)
  const input = found.input === undefined ? '' : await fs.readFile(path.join(folder, found.input), 'utf8')
  return { words: found.words, input }
}

/** What stands for something else in the first help. */
const here: Readonly<Record<string, string>> = {
  IMAGE: 'tiny-amd64',
  USER: 'ci-bot',
  'https://REGISTRY': 'https://ghcr.io',
}

describe('the first steps of "svc3 --help"', () => {
  it('the help is the same whether the build wrote it down or the program makes it, under both names', async () => {
    for (const name of ['svc3', 'orka3'])
      for (const words of [[], ['--help'], ['-h']]) {
        const { stdout } = await promisify(execFile)(path.join(root, 'bin', name), words)
        assert.equal(stdout, (await run(words, { calledAs: name })).stdout)
      }
  })

  // Pushing takes a registry and is tested in push.full.test.ts.
  for (const { line } of tour.filter(({ line }) => !line.startsWith('svc3 vm push')))
    it(line, { timeout: 400_000 }, async () => {
      const words = line.split(' ').slice(1)
      const asks = line.includes('regcred add') ? { typed: 'secret\r' } : line === 'svc3 login' ? login : {}
      const { exitCode, stderr } = await svc3(
        words.map((word) => here[word] ?? word),
        asks,
      )
      assert.equal(exitCode, 'exit' in asks ? asks.exit : 0, stderr)
      if (line.startsWith('svc3 vm deploy demo')) await greetIn('demo')
    })
  after(async () => {
    for (const greeter of greeters.splice(0)) greeter.close()
    await svc3(['regcred', 'remove', 'https://ghcr.io'])
  })
})

describe('every example of every help text', () => {
  for (const line of lines)
    it(line, { timeout: 400_000 }, async () => {
      const how: How = (Object.hasOwn(plan, line) ? plan[line] : undefined) ?? {}
      for (const given of how.given ?? []) {
        const { exitCode, stderr } = await svc3(given.split(' '))
        assert.equal(exitCode, 0, `${given}: ${stderr}`)
      }
      const { words, input } = await shellOf(line)
      const here = words.map((word) => how.as?.[word] ?? word.replace(/^\/tmp\//, `${folder}/`))
      const call = async () => {
        const result = await svc3(here, { ...how, input })
        assert.equal(result.exitCode, how.exit ?? 0, result.stderr)
        return result
      }
      const called = how.isRepeated ? eventually(call, 60_000) : call()
      const [{ stdout, stderr }] = await Promise.all([called, how.guest && sayOnConsole(how.guest)])
      assert.match(stdout, how.printed ?? /(?:)/)
      assert.match(stderr, how.said ?? /(?:)/)
      assert.ok(!/\n\s+at |undefined/.test(stderr + stdout), stderr + stdout)
      if (line === 'svc3 vm deploy demo -i tiny-amd64') await greetIn('demo')
    })
})
