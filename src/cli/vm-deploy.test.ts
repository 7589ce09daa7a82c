// vm deploy against a stand-in service: requests, progress, names, restarts, Ctrl-C, exit codes.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import { type FakeHostOptions, run } from '../../test/support/rigs/cli-host.ts'
import { type FakeService, startFakeService } from '../../test/support/stand-ins/api.ts'
import { type Answer, type Asked, change, changes, pendingVm, serve, vmOf } from '../../test/support/stand-ins/fleet.ts'
import { ApiError } from '../api/errors.ts'

let service: FakeService
let env: Record<string, string>
before(async () => {
  service = await startFakeService()
  env = { SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.token }
})
after(() => service[Symbol.asyncDispose]())
let asked: Asked[] = []
beforeEach(() => {
  asked = []
  service.requests.length = 0
  serve(service, { 'POST vms': deployed, 'WATCH vms': changes() })
})

const deployed: Answer = (request) => {
  asked.push(request)
  return vmOf({ name: String(request.body.name) })
}
const deploy = (words: string, options: FakeHostOptions = {}) =>
  run(['vm', 'deploy', ...words.split(' ')], { ...options, env: { ...env, ...options.env } })
/** Ignores watches of earlier tests, which use other namespaces. */
const requestsTo = (namespace: string): number =>
  service.requests.filter(({ path }) => path.includes(`/${namespace}/`)).length
const sent = () => service.requests.filter(({ path }) => !path.includes('watch=true'))
const lines = (text: string): string[] => text.split('\n').slice(0, -1)

describe('vm deploy: the request', () => {
  it('vm deploy sends only the given options', async () => {
    const { exitCode, stdout } = await deploy('demo -i tiny-amd64')
    assert.equal(exitCode, 0)
    assert.deepEqual(asked[0]?.body, { name: 'demo', image: 'tiny-amd64', timeout: 10 })
    assert.equal(asked[0]?.query.toString(), 'onDisconnect=delete')
    assert.match(stdout, /^NAME\tIP\tSSH\tVNC\tSCREENSHARE\tSTATUS\ndemo\t10\.0\.0\.7\t8822\t5999\t5900\tRunning\n$/)
  })

  it('vm deploy that is refused at once does not say that it waits; a slow answer is waited for', async () => {
    const late = Promise.withResolvers<void>()
    const refuse = async ({ body }: Asked) => {
      if (body.name === 'slow') await late.promise
      throw new ApiError('Invalid', 'No node can hold it', { hint: 'Try --cpu 2' })
    }
    serve(service, { 'POST vms': refuse, 'WATCH vms': changes() })
    const there = change('ADDED', vmOf({ name: 'demo' }))
    const refuseLater = (request: Asked) =>
      new Promise((resolve) => setTimeout(resolve, 200)).then(() => refuse(request))
    serve(service, { 'POST vms': refuseLater, 'WATCH vms': changes(there) })
    assert.deepEqual(lines((await deploy('demo -i a')).stderr), ['svc3: No node can hold it', 'svc3: Try --cpu 2'])
    serve(service, { 'POST vms': refuse, 'WATCH vms': changes() })
    assert.deepEqual(lines((await deploy('demo -i a')).stderr), ['svc3: No node can hold it', 'svc3: Try --cpu 2'])
    const onWrite = ({ stderr }: { stderr: string }) => void (stderr.startsWith('Waiting') && late.resolve())
    const slow = await deploy('slow -i a', { onWrite })
    assert.match(slow.stderr, /^Waiting for VM slow to be deployed\.\nsvc3: No node can hold it\n/)
  })

  it('vm deploy repeats why the disk of its image will not boot', async () => {
    const warning = 'The disk has no boot loader'
    const images = { 'GET images/sonoma': () => ({ name: 'sonoma', warning }) }
    serve(service, { 'POST vms': deployed, 'WATCH vms': changes(), ...images })
    assert.equal(lines((await deploy('demo -i sonoma')).stderr).at(-1), `svc3: Image sonoma: ${warning}`)
  })

  it('vm deploy says that the guest of the VM cannot be reached, and what to do', async () => {
    const condition = {
      type: 'GuestReachable',
      status: 'False',
      reason: 'OtherGuest',
      message: 'at another MAC',
      at: '',
    }
    const unreachable = ({ body }: Asked) => ({ ...vmOf({ name: String(body.name) }), conditions: [condition] })
    serve(service, { 'POST vms': unreachable, 'WATCH vms': changes() })
    assert.deepEqual(lines((await deploy('demo -i sonoma')).stderr).slice(-2), [
      'svc3: VM demo is running, but cannot be reached: another VM has the IP address of the guest (at another MAC)',
      'svc3: Restart the guest from its screen, or delete the VM and deploy another',
    ])
  })

  it('vm deploy recognizes an image without its option, and does not repeat possible secrets', async () => {
    const { exitCode, stderr } = await deploy('demo tiny-amd64')
    const said = ['svc3: Unexpected argument "tiny-amd64" (expected [NAME])', 'svc3: Did you mean --image tiny-amd64?']
    assert.deepEqual([exitCode, lines(stderr)], [2, said])
    for (const line of ['demo --metadata key=a planted', 'demo -i x planted', 'demo key=planted', 'demo planted word'])
      assert.doesNotMatch((await deploy(line)).stderr, /planted/)
  })

  it('vm deploy --dry-run only asks for an estimate, and exits 1 where the VM fits nowhere', async () => {
    const shown = { cpu: 3, memory: '4.80Gi', image: 'a', architecture: 'arm64', hasImage: false, nodes: [] }
    const known = { ...shown, node: 'mini-1', os: 'macos', size: '90G', message: 'it would go to node "mini-1"' }
    serve(service, { 'POST vms/estimate': () => known })
    const { exitCode, stdout, stderr } = await deploy('demo -i a --dry-run')
    assert.equal(stdout, 'NODE\tCPU\tMEMORY\tIMAGE\tTYPE\tOS\tSIZE\nmini-1\t3\t4.80Gi\ta\tarm64\tmacos\t90G\n')
    assert.deepEqual([exitCode, stderr], [0, 'svc3: it would go to node "mini-1"\n'])
    serve(service, { 'POST vms/estimate': () => ({ ...shown, message: 'it would wait for a node' }) })
    assert.equal((await deploy('-i a --dry-run')).exitCode, 1)
    assert.deepEqual(asked, [])
  })

  it('vm deploy sends every option as a field of the API', async () => {
    const words =
      'demo --config ios -i sonoma -c 4 -m 4.8 --node mini-1 --tag ios --tag-required --scheduler most-allocated ' +
      '-p 9000:80,5353:53/udp --metadata a=1,b=x=y --metadata c= --iso x.iso --system-serial S1 -g=true --disable-vnc=true --generate-name=false ' +
      '--disable-net-boost --legacy-io --display-width 800 --display-height 600 --display-dpi 72 --label team=ios ' +
      '--dir cache:/Users/ci/cache:ro --dir out:/o --nested --rosetta r --ttl 2h --timeout 1h0m7s -n=svc-ios'
    await deploy(words)
    assert.match(asked[0]?.path ?? '', /namespaces\/svc-ios\/vms\?onDisconnect=delete$/)
    assert.deepEqual(asked[0]?.body, {
      name: 'demo',
      vmConfig: 'ios',
      image: 'sonoma',
      cpu: 4,
      memory: 4.8,
      node: 'mini-1',
      tag: 'ios',
      tagRequired: true,
      scheduler: 'most-allocated',
      reservedPorts: '9000:80,5353:53/udp',
      customVMMetadata: { a: '1', b: 'x=y', c: '' },
      iso: 'x.iso',
      systemSerial: 'S1',
      gpuPassthrough: true,
      vncConsole: false,
      netBoost: false,
      legacyIO: true,
      directories: ['cache:/Users/ci/cache:ro', 'out:/o'],
      nested: true,
      rosetta: 'r',
      displayWidth: 800,
      displayHeight: 600,
      displayDPI: 72,
      labels: { team: 'ios' },
      ttl: '2h',
      timeout: 3_607 / 60,
    })
  })

  it('vm deploy sends the first-boot script as base64, from a file or standard input', async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-userdata-'))
    try {
      fs.writeFileSync(path.join(folder, 'boot.sh'), '#!/bin/sh\necho ä\n')
      await deploy('demo -i x --userdata boot.sh', { workingDir: folder })
      await deploy('demo -i x --userdata -', { input: '#!/bin/sh\necho ä\n' })
      for (const { body } of asked)
        assert.equal(Buffer.from(String(body.userdata), 'base64').toString(), '#!/bin/sh\necho ä\n')
      const missing = await deploy('demo -i x --userdata nothing.sh', { workingDir: folder })
      assert.equal(missing.exitCode, 1)
      assert.match(missing.stderr, /Cannot read .*nothing\.sh \(ENOENT\)/)
      assert.equal((await deploy('demo -i x --userdata -', { input: 'x'.repeat(300_000) })).exitCode, 2)
      assert.equal((await deploy('demo -i x --userdata -')).exitCode, 2)
    } finally {
      fs.rmSync(folder, { recursive: true })
    }
  })

  it('vm deploy --no-wait sends wait=false, and does not wait', async () => {
    const { stdout, stderr } = await deploy('demo -i x --no-wait -n svc-still')
    assert.equal(asked[0]?.query.get('wait'), 'false')
    assert.deepEqual([lines(stdout).length, stderr, requestsTo('svc-still')], [2, '', 1])
  })

  it('vm deploy --name is the argument NAME, also as a prefix, and may repeat it', async () => {
    await deploy('--name demo -i x')
    await deploy('demo --name demo -i x')
    await deploy('--name ci --generate-name -i x')
    assert.deepEqual([asked[0]?.body.name, asked[1]?.body.name], ['demo', 'demo'])
    assert.match(String(asked[2]?.body.name), /^ci-[a-z0-9]{5}$/)
  })

  const sizes: Readonly<Record<string, number>> = {
    '8': 8,
    '4.8': 4.8,
    '8G': 8,
    '8g': 8,
    '0.5GB': 0.5,
    '16Gi': 16,
    '4.8GiB': 4.8,
  }
  for (const [text, memory] of Object.entries(sizes)) {
    it(`vm deploy --memory ${text} asks for ${memory} GiB`, async () => {
      await deploy(`demo -i x --memory ${text}`)
      assert.equal(asked[0]?.body.memory, memory)
    })
  }

  const slips: Readonly<Record<string, RegExp>> = {
    demo: /Specify --image or --config\n.*svc3 image list/,
    'Demo -i x': /Invalid VM name "Demo"\n.*lowercase/,
    'demo- -i x': /Invalid VM name "demo-"/,
    [`${'a'.repeat(60)} -i x --generate-name`]:
      /is too long with the suffix that is put behind it: at most 57 characters, not 60/,
    'demo -i x -c 0': /--cpu "0": specify a whole number/,
    'demo -i x -m lots': /Invalid --memory "lots": specify GiB, such as 8, 4\.8 or 8G/,
    'demo -i x -m 4.85': /--memory "4\.85"/,
    'demo -i x -m 0': /--memory "0"/,
    'demo -i x -m 0G': /--memory "0G"/,
    'demo -i x -m 8T': /--memory "8T"/,
    'demo -i x -m 8192M': /--memory "8192M"/,
    'demo -i x -m 100000': /--memory "100000": .* at most 99999/,
    'demo -i x --name other': /Two names specified: demo and --name other\n.*Specify the name once/,
    '-i x --name Demo': /Invalid VM name "Demo"/,
    'demo -i x -p 80': /--ports: invalid port "80"; use NODE:VM/,
    'demo -i x -p 22:22': /--ports: port 22 cannot be reserved/,
    'demo -i x --metadata planted-secret': /Invalid part 1 of --metadata: specify KEY=VALUE/,
    'demo -i x --metadata =planted-secret': /part 1 of --metadata/,
    'demo -i x --label a=1,a=2': /--label has the key "a" twice/,
    'demo -i x --ttl soon': /Invalid --ttl "soon"/,
    'demo -i x --ttl 0s': /Invalid --ttl "0s"/,
    'demo -i x --tag -x': /--tag requires a value/,
    'demo -i x --tag a/b': /Invalid --tag "a\/b"/,
    'demo -i x --tag-required': /--tag-required requires --tag/,
    'demo -i x --scheduler best': /--scheduler "best": choose from default, most-allocated/,
    'demo -i x --timeout 0': /--timeout "0"/,
    'demo -i x --timeout 25h': /--timeout "25h": specify minutes from 1 to 1440/,
  }
  for (const [words, text] of Object.entries(slips)) {
    it(`${words.slice(0, 60)} is wrong usage`, async () => {
      const { exitCode, stderr } = await deploy(words)
      assert.equal(exitCode, 2)
      assert.match(stderr, text)
      assert.ok(!stderr.includes('planted-secret'))
      assert.deepEqual(sent(), [])
    })
  }
})

describe('vm deploy: names', () => {
  it('vm deploy generates a name without NAME, or for a prefix', async () => {
    const { stderr } = await deploy('-i x')
    const name = String(asked[0]?.body.name)
    assert.match(name, /^vm-[a-z0-9]{5}$/)
    assert.equal(stderr, `Waiting for VM ${name} to be deployed.\n`)
    await deploy('ci --generate-name -i x')
    assert.match(String(asked[1]?.body.name), /^ci-[a-z0-9]{5}$/)
    assert.equal(asked[1]?.body.shouldGenerateName, undefined)
  })

  it('vm deploy replaces a name that is taken only when it was generated', async () => {
    const taken: Answer = (request) => {
      asked.push(request)
      if (asked.length < 3) throw new ApiError('AlreadyExists', 'there is one')
      return vmOf({ name: String(request.body.name) })
    }
    serve(service, { 'POST vms': taken, 'WATCH vms': changes() })
    assert.equal((await deploy('-i x')).exitCode, 0)
    assert.equal(new Set(asked.map(({ body }) => body.name)).size, 3)
    asked = []
    assert.equal((await deploy('demo -i x')).exitCode, 6)
    assert.equal(asked.length, 1)
  })
})

describe('vm deploy: waiting', () => {
  /** Responds when these changes have been shown. */
  function steps(...texts: readonly string[]) {
    const shown = Promise.withResolvers<void>()
    const step = (phase: string, percent?: number) =>
      change(
        'MODIFIED',
        vmOf({
          name: 'demo',
          status: 'Pending',
          operation: { kind: 'deploy', phase, ...(percent !== undefined && { percent }) },
        }),
      )
    serve(service, {
      'POST vms': async (request) => {
        await shown.promise
        return deployed(request, undefined as never)
      },
      'WATCH vms': (request, response) => {
        asked.push(request)
        const waits = change('ADDED', pendingVm('demo', 'node a: is cordoned'))
        changes(waits, step('building the image'), step('building the image', 40), step('starting'))(request, response)
      },
    })
    const onWrite = ({ stderr }: { stderr: string }): void => {
      if (texts.every((text) => stderr.includes(text))) shown.resolve()
    }
    return { onWrite }
  }

  it('vm deploy writes a plain line per step to a pipe', async () => {
    const { stdout, stderr } = await deploy('demo -i x', steps('starting'))
    assert.equal(asked[0]?.query.get('fieldSelector'), 'name=demo')
    assert.deepEqual(lines(stderr), [
      'Waiting for VM demo to be deployed.',
      'svc3: VM demo: waiting for a node: node a: is cordoned',
      'svc3: VM demo: building the image',
      'svc3: VM demo: starting',
    ])
    assert.equal(lines(stdout).length, 2)
  })

  it('vm deploy shows one changing line with a bar on a terminal, and removes it', async () => {
    const { stderr } = await deploy('demo -i x', { ...steps('starting'), terminal: { stdout: true } })
    assert.ok(stderr.includes('\r\x1b[2KVM demo: building the image [########------------] 40 %'), stderr)
    assert.ok(stderr.endsWith('\r\x1b[2KVM demo: starting\r\x1b[2K'), JSON.stringify(stderr))
    assert.equal(lines(stderr).length, 1)
  })

  for (const words of ['demo -i x -o json', 'demo -i x -o yaml', 'demo -i x --quiet']) {
    it(`vm deploy shows no progress with ${words}`, async () => {
      const { stdout, stderr } = await deploy(`${words} -n svc-quiet`, { terminal: { stdout: true } })
      assert.equal(stderr, '')
      assert.equal(requestsTo('svc-quiet'), 1)
      if (words.includes('json')) assert.deepEqual(JSON.parse(stdout), [vmOf({ name: 'demo' })])
    })
  }

  it('vm deploy succeeds when its watch fails', async () => {
    serve(service, { 'POST vms': deployed })
    assert.equal((await deploy('demo -i x')).exitCode, 0)
  })

  it('vm deploy stops waiting at Ctrl-C, and says how to check again', async () => {
    const controller = new AbortController()
    serve(service, { 'POST vms': () => controller.abort(), 'WATCH vms': changes() })
    const { exitCode, stdout, stderr } = await deploy('demo -i x', { interruption: controller.signal })
    assert.deepEqual([exitCode, stdout], [130, ''])
    const fate = 'The VM is deleted unless it runs within 90 s. To delete it now: svc3 vm delete demo'
    assert.equal(stderr, `svc3: Stopped waiting; the deploy continues\nsvc3: ${fate}\n`)
  })

  it('vm deploy of a job lets the server delete a VM whose caller left, and a person at a terminal keeps it', async () => {
    const query = async (line: string, options: FakeHostOptions = {}) => {
      serve(service, { 'POST vms': deployed, 'WATCH vms': changes() })
      service.requests.length = 0
      await deploy(line, options)
      return service.requests.find(({ method }) => method === 'POST')?.path.split('?')[1] ?? ''
    }
    const terminal = { stdout: true }
    assert.equal(await query('demo -i x'), 'onDisconnect=delete')
    assert.equal(await query('demo -i x', { terminal }), '')
    const ci = { SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.token, CI: 'true' }
    assert.equal(await query('demo -i x', { terminal, env: ci }), 'onDisconnect=delete')
    assert.equal(await query('demo -i x --no-wait'), 'wait=false')
  })
})

describe('vm deploy: failures', () => {
  const refusals = [
    ['Timeout', 7, 'vm "demo" was not placed within 10 minutes: node a: is cordoned'],
    ['AlreadyExists', 6, 'VM demo already exists'],
    ['NotFound', 5, 'Image x not found'],
    ['Forbidden', 4, 'no'],
    ['Invalid', 2, 'GPU needs a node that has one'],
  ] as const
  for (const [reason, exitCode, message] of refusals) {
    it(`vm deploy that fails with ${reason} exits ${exitCode}, with the reason`, async () => {
      const refuse = () => {
        throw new ApiError(reason, message)
      }
      serve(service, { 'POST vms': refuse, 'WATCH vms': changes() })
      const failed = await deploy('demo -i x')
      assert.deepEqual([failed.exitCode, failed.stdout], [exitCode, ''])
      // An internal error of the service is reported with the ID of the request.
      const request = { 7: ' (request request-1)', 4: ` (${service.apiUrl})` }[exitCode as number] ?? ''
      assert.equal(lines(failed.stderr)[0], `svc3: ${message}${request}`)
    })
  }

  it('vm deploy asks a restarted service again, for the same VM', async () => {
    const keys: unknown[] = []
    serve(service, {
      'POST vms': (request, response) => {
        keys.push([request.headers['idempotency-key'], request.body.name])
        if (keys.length === 1) throw new ApiError('ServiceUnavailable', 'restarting')
        if (keys.length === 2) return void response.destroy()
        if (keys.length === 3) throw new ApiError('ServiceUnavailable', 'starting')
        return deployed(request, response)
      },
      'WATCH vms': changes(),
    })
    assert.equal((await deploy('-i x')).exitCode, 0)
    assert.equal(keys.length, 4)
    for (const key of keys) assert.deepEqual(key, keys[0])
  })

  it('a retried change prints the reason: once in a pipe, in the progress line on a terminal', async () => {
    let left = 0
    const refuse: Answer = (request) => {
      if (left-- > 0) throw new ApiError('ServiceUnavailable', 'Registry r did not answer')
      return vmOf({ name: String(request.body.name ?? 'demo') })
    }
    serve(service, { 'POST vms': refuse, 'WATCH vms': changes(), 'POST vms/demo/save': refuse })
    const said = 'Registry r did not answer; trying again'
    const tried = (words: string, options: FakeHostOptions = {}) => {
      left = 2
      return run(['vm', ...words.split(' ')], { ...options, env })
    }
    const waits = 'Waiting for VM demo to be deployed.'
    assert.deepEqual(lines((await tried('deploy demo -i x')).stderr), [waits, `svc3: VM demo: ${said}`])
    const onTerminal = await tried('deploy demo -i x', { terminal: { stdout: true } })
    assert.ok(onTerminal.stderr.includes(`\r\x1b[2KVM demo: ${said}`), JSON.stringify(onTerminal.stderr))
    for (const words of ['deploy demo -i x --no-wait', 'save demo tools'])
      assert.equal(lines((await tried(words)).stderr)[0], `svc3: ${said}`)
    assert.equal((await tried('deploy demo -i x --quiet')).stderr, '')
  })

  it('vm deploy says at once that no service answers', async () => {
    const gone = await startFakeService()
    await gone[Symbol.asyncDispose]()
    const { exitCode, stderr } = await deploy('demo -i x -o json', { env: { SVC3_API_URL: gone.apiUrl } })
    assert.equal(exitCode, 1)
    assert.match(stderr, /No server answers/)
  })
})
