// Completions from the table of commands and from the service, and none if the service does not answer.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import { run } from '../../../test/support/rigs/cli-host.ts'
import { type FakeService, recordOf, startFakeService } from '../../../test/support/stand-ins/api.ts'
import { nodeOf, serve, vmOf } from '../../../test/support/stand-ins/fleet.ts'
import { type Patience, withoutLimit } from '../../../test/support/tools/patience.ts'
import { namesTimeoutMs } from '../commands/complete.ts'
import { shells } from './completion-scripts.ts'

let service: FakeService
let patience: Patience
let folder: string
let env: Record<string, string>
before(async () => {
  service = await startFakeService()
  patience = withoutLimit(namesTimeoutMs)
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-complete-'))
  const contexts = { work: { apiUrl: service.apiUrl, token: service.token, namespace: 'svc-work' }, lab: {} }
  fs.mkdirSync(path.join(folder, 'svc3'))
  fs.writeFileSync(path.join(folder, 'svc3/config.json'), JSON.stringify({ contexts }))
})
after(async () => {
  patience.end()
  fs.rmSync(folder, { recursive: true })
  await service[Symbol.asyncDispose]()
})
beforeEach(() => {
  env = { SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.token, XDG_CONFIG_HOME: folder }
  service.requests.length = 0
  serve(service, {
    'GET vms': () => ({ items: [vmOf({ name: 'demo' }), vmOf({ name: 'ci-1' })] }),
    'GET pushjobs': () => ({ items: [{ name: 'vm-push-4k2vx' }] }),
    'GET images': () => ({ items: [{ name: 'sonoma' }, { name: 'ventura' }] }),
    'GET nodes': () => ({ items: [nodeOf({ name: 'mini-1', orkaTags: ['ios'] }), nodeOf({ name: 'mini-2' })] }),
    'GET secrets/registrycredentials': () => ({ items: [recordOf({ server: 'https://ghcr.io', username: 'x' })] }),
    'GET ': () => ({ items: [{ name: 'svc-ios' }] }),
  })
})

async function complete(line: string, more: Record<string, string> = {}): Promise<string[]> {
  const { exitCode, stdout, stderr } = await run(['__complete', '--', ...line.split(' ')], { env: { ...env, ...more } })
  assert.deepEqual([exitCode, stderr], [0, ''])
  return stdout
    .trimEnd()
    .split('\n')
    .map((text) => text.split('\t')[0] ?? '')
}

describe('completion', () => {
  const cases: Readonly<Record<string, readonly string[]>> = {
    v: ['vm', 'vm-config', 'version'],
    'vm de': ['deploy', 'delete'],
    '-n svc-ios vm de': ['deploy', 'delete'],
    'vmc l': ['list'],
    'vm l': ['list', 'label', 'logs'],
    'vm ls': ['ls'],
    'vm desc': ['describe'],
    'vm rm ': ['ci-1', 'demo'],
    nonsense: [],
    'nonsense x': [],
    'vm list ': ['ci-1', 'demo'],
    'vm delete demo ': ['ci-1'],
    'vm list d': ['demo'],
    'vm ssh ': ['ci-1', 'demo'],
    'vm ssh demo -- ': [],
    'vm deploy --im': ['--image', '--image-start'],
    'vm deploy --image ': ['sonoma', 'ventura'],
    'vm deploy -i s': ['sonoma'],
    'vm deploy --image=v': ['--image=ventura'],
    'vm deploy x -i sonoma --im': ['--image-start'],
    'vm deploy --label a=b --la': ['--label'],
    'vm deploy --tag ': ['ios'],
    'vm deploy --scheduler ': ['default', 'most-allocated'],
    'vm deploy --scheduler=m': ['--scheduler=most-allocated'],
    'vm deploy --userdata ': [':files'],
    'dev --data ': [':folders'],
    'node tag ': ['mini-1', 'mini-2'],
    'regcred remove https:': ['https://ghcr.io'],
    'vm list -o ': ['table', 'wide', 'json', 'yaml'],
    '-o j': ['json'],
    'config use-context ': ['work', 'lab'],
    'vm list --context w': ['work'],
    'help vm st': ['start', 'stop'],
    'completion ': [...shells],
    'server us': ['users'],
    'server users ': ['list', 'add', 'remove', 'reset'],
    'server --plain': ['--plain-http'],
    'vm resize demo ': [],
    'events --for v': ['vm/', 'vm-config/'],
    'events --for vm/d': ['vm/demo'],
    'events --for=node/mini-1': ['--for=node/mini-1'],
    'events --for nothing/': [],
    'events --for pushjob/': ['pushjob/vm-push-4k2vx'],
    'vm get-push-status ': ['vm-push-4k2vx'],
    'vm cancel-push ': ['vm-push-4k2vx'],
    'image download s': ['sonoma'],
    'vm save d': ['demo'],
    'vm save demo ': [],
    'image set-description ': ['sonoma', 'ventura'],
  }
  for (const [line, wanted] of Object.entries(cases))
    it(`completion of svc3 ${line}⇥ offers ${wanted.join(' ') || 'nothing'}`, async () => {
      const found = await complete(line)
      assert.deepEqual(found.at(-1)?.startsWith(':') && found.filter((word) => word !== ':'), wanted)
    })

  it('completion offers options if nothing else fits', async () => {
    assert.deepEqual((await complete('config set ')).slice(0, 2), ['--api-url', '--namespace'])
  })

  it('completion asks in the namespace and the context of the line', async () => {
    await complete('vm list -n svc-ios ')
    assert.match(service.requests.at(-1)?.path ?? '', /namespaces\/svc-ios\/vms/)
    await complete('vm list --context work ', { SVC3_API_URL: 'http://127.0.0.1:1' })
    assert.match(service.requests.at(-1)?.path ?? '', /namespaces\/svc-work\/vms/)
  })

  it('completion never offers names that could control a terminal or a shell', async () => {
    serve(service, {
      'GET vms': () => ({ items: [vmOf({ name: 'a b' }), vmOf({ name: '\x1b[2J' }), vmOf({ name: 'ok' })] }),
    })
    assert.deepEqual(await complete('vm list '), ['ok', ':'])
  })

  it('completion is silent and quick when the service is down, does not answer, or refuses', async () => {
    service.override = () => undefined
    patience.end()
    assert.deepEqual(await complete('vm list '), [':'])
    assert.deepEqual(await complete('vm list ', { SVC3_API_URL: 'http://127.0.0.1:1' }), [':'])
    assert.deepEqual(await complete('vm list ', { SVC3_API_URL: 'not an address' }), [':'])
    service.override = undefined
    assert.deepEqual(await complete('regcred remove ', { SVC3_TOKEN: 'wrong' }), [':'])
  })
})

describe('completion scripts', () => {
  for (const shell of shells)
    it(`completion scripts of ${shell} are printed, for both names`, async () => {
      const { exitCode, stdout } = await run(['completion', shell])
      assert.equal(exitCode, 0)
      for (const word of ['svc3', 'orka3', '__complete']) assert.ok(stdout.includes(word))
    })

  it('completion scripts of PowerShell, which is not in Debian, have balanced brackets and quotes', async () => {
    const { stdout } = await run(['completion', 'powershell'])
    const code = stdout.replaceAll(/^#.*$/gm, '').replaceAll(/'[^'\n]*'|"[^"\n]*"/g, '""')
    const open: string[] = []
    const pairs: Readonly<Record<string, string>> = { ')': '(', '}': '{', ']': '[' }
    for (const sign of code.replaceAll(/[^(){}[\]'"]/g, '').replaceAll('""', ''))
      if (sign in pairs) assert.equal(open.pop(), pairs[sign])
      else open.push(sign)
    assert.deepEqual(open, [])
  })

  for (const shell of shells) {
    it(`completion scripts of ${shell} with --no-descriptions differ in asking for none`, async () => {
      const [full, bare] = [await run(['completion', shell]), await run(['completion', shell, '--no-descriptions'])]
      assert.equal(bare.exitCode, 0)
      assert.equal(bare.stdout.replace(' --no-descriptions', ''), full.stdout)
      assert.match(bare.stdout, /__complete'? --no-descriptions '?--'? /)
    })
  }

  it('completion without descriptions has the same candidates, each with an empty one', async () => {
    const [full, bare] = [
      await run(['__complete', '--', 'vm', 'de']),
      await run(['__complete', '--no-descriptions', '--', 'vm', 'de']),
    ]
    assert.match(full.stdout, /^deploy\t\w.*\ndelete\t\w.*\n:\n$/)
    assert.equal(bare.stdout, 'deploy\t\ndelete\t\n:\n')
  })

  it('completion scripts are refused for unknown shells', async () => {
    const { exitCode, stderr } = await run(['completion', 'bsh'])
    assert.equal(exitCode, 2)
    assert.match(
      stderr,
      /"bsh" is not one of bash, zsh, fish, powershell. Did you mean bash\?\nsvc3: Usage: svc3 completion SHELL/,
    )
  })
})
