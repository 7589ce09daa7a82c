// Completion in real shells: bash and zsh on a terminal, keys typed and Tab pressed; fish by its own "complete -C".
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { makeFolder, root } from '../support/processes/dev-server.ts'
import { type FakeService, recordOf, startFakeService } from '../support/stand-ins/api.ts'
import { nodeOf, serve, vmOf } from '../support/stand-ins/fleet.ts'

let service: FakeService
let home: string
before(async () => {
  home = await makeFolder()
  service = await startFakeService()
  serve(service, {
    'GET vms': () => ({ items: [vmOf({ name: 'demo' })] }),
    'GET images': () => ({ items: [{ name: 'sonoma' }, { name: 'ventura' }] }),
    'GET nodes': () => ({ items: [nodeOf({ name: 'mini-1' })] }),
    'GET secrets/registrycredentials': () => ({ items: [recordOf({ server: 'https://ghcr.io', username: 'x' })] }),
  })
  await fs.writeFile(path.join(home, 'password.txt'), '')
})
after(async () => {
  await fs.rm(home, { recursive: true })
  await service[Symbol.asyncDispose]()
})

const environment = () => ({
  PATH: `${path.join(root, 'bin')}:${process.env.PATH}`,
  HOME: home,
  TERM: 'dumb',
  SVC3_API_URL: service.apiUrl,
  SVC3_TOKEN: service.token,
  // The test repeats the request until it answers: a person would continue typing after half a second.
  SVC3_TEST: '1',
})

/** What is typed before Tab → what then stands on the line. */
const typed: Readonly<Record<string, string>> = {
  'svc3 vm dep': 'svc3 vm deploy ',
  'svc3 vm deploy --imag': 'svc3 vm deploy --image ',
  'svc3 vm deploy x --image so': 'svc3 vm deploy x --image sonoma ',
  'orka3 vm deploy x --image=ve': 'orka3 vm deploy x --image=ventura ',
  'svc3 node cordon m': 'svc3 node cordon mini-1 ',
  'svc3 regcred remove https://g': 'svc3 regcred remove https://ghcr.io ',
  'svc3 vm deploy --userdata pass': 'svc3 vm deploy --userdata password.txt ',
}

const shells = {
  bash: ['bash --noprofile --norc -i', 'bind "set bell-style none"; eval "$(svc3 completion bash)"'],
  zsh: ['zsh -f -i', 'setopt no_beep; autoload -U compinit; compinit -u -D; eval "$(svc3 completion zsh)"'],
} as const

/** A shell on a terminal. `type` sends keys and waits until the terminal has shown what is expected. */
function openShell(line: string) {
  const child = spawn('script', ['-qec', line, '/dev/null'], {
    cwd: home,
    env: environment(),
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let shown = ''
  let look: () => void = () => undefined
  child.stdout.on('data', (chunk) => {
    shown += chunk
    look()
  })
  const type = (keys: string, expected: RegExp): Promise<string> => {
    const from = shown.length
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const timer = setTimeout(
      () => reject(new Error(`${expected} did not come: ${JSON.stringify(shown.slice(from))}`)),
      60_000,
    )
    look = () => {
      if (!expected.test(shown.slice(from))) return
      clearTimeout(timer)
      resolve(shown.slice(from))
    }
    child.stdin.write(keys)
    return promise
  }
  return { child, type }
}

const escaped = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')

describe('completion in a terminal', { concurrency: 2 }, () => {
  for (const [shell, [line, setup]] of Object.entries(shells))
    it(shell, async () => {
      const { child, type } = openShell(line)
      after(() => child.kill('SIGKILL'))
      await type(`${setup}; PS1='@''@ '\n`, /[\r\n]@@ [^\n]*$/)
      for (const [keys, wanted] of Object.entries(typed)) {
        await type(`${keys}\t`, new RegExp(`${escaped(wanted.trimEnd())}(?![\\w.-])`))
        // Takes the line back, so that nothing runs.
        await type('\x15\n', /[\r\n]@@ [^\n]*$/)
      }
      child.stdin.end('exit\n')
      await once(child, 'close')
    })

  it('completion in a terminal works in fish', async () => {
    const lines = Object.keys(typed).map((keys) => `complete -C '${keys}'; echo .`)
    const child = spawn('fish', ['-N', '-c', `svc3 completion fish | source; ${lines.join('; ')}`], {
      cwd: home,
      env: environment(),
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let output = ''
    child.stdout.on('data', (chunk) => {
      output += chunk
    })
    await once(child, 'close')
    const found = output.split('\n.\n').slice(0, -1)
    const last = (line: string): string => line.trimEnd().split(' ').at(-1) ?? ''
    assert.deepEqual(
      found.map((text) => text.split('\t')[0]?.trim()),
      Object.values(typed).map(last),
    )
  })
})
