// The README's tour and its chapter on access, line by line: every command of its console blocks runs in a terminal against a real server on fresh
// data, and prints what stands there. `…` stands for what differs from run to run, within one line.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { seedTiny } from '../support/guests/guest.ts'
import { type DevServer, makeFolder, root, startDev } from '../support/processes/dev-server.ts'
import { ownAddress } from '../support/tools/own-address.ts'

interface Step {
  readonly command: string
  readonly expected: string
}

/** What a person does in the server's own terminal; every other command is the shell's. */
const start = 'npm start'
const stop = '^C'

const readme = await fs.readFile(path.join(root, 'README.md'), 'utf8')
const steps = [...readme.matchAll(/^```console\n(.*?)^```$/gms)].flatMap((block) => stepsOf(block[1] ?? ''))

/** A command begins with `$ ` (or is Ctrl-C), goes on while its lines end in a backslash; then follows its output. */
function stepsOf(block: string): Step[] {
  const pieces = block.replaceAll(/^\^C$/gm, `$$ ${stop}`).split(/^\$ /m)
  assert.equal(pieces.shift(), '', `a console block begins with its output:\n${block}`)
  return pieces.map((piece) => {
    const command = /^(?:.*\\\n)*.*\n/.exec(piece)?.[0] ?? ''
    return { command: command.trimEnd(), expected: piece.slice(command.length).trimEnd() }
  })
}

/** The beginning of what clears a line. */
const takenBack = '\x1b'

/** What stays on a terminal: a line that was taken back is gone. Ports are whatever this machine had free. */
const seen = (text: string): string =>
  text
    .split('\n')
    .map((line) => line.slice(line.lastIndexOf(takenBack) + 1).replace(/^\[2K/, ''))
    .join('\n')
    .replaceAll(/\b(?:88[2-9]\d|59\d\d|60\d\d)\b/g, '9999')
    .trimEnd()

/** On a slow machine, what the README has as "just now" is a minute old, and its column wider. */
const aMinuteAgo = /\b\d+ min ago\b/
const sooner = (text: string): string =>
  text.replaceAll(new RegExp(aMinuteAgo, 'g'), 'just now').replaceAll(/ {2,}/g, '  ')

const isPrinted = (actual: string, expected: string): boolean =>
  hasForm(actual, expected) || (aMinuteAgo.test(actual) && hasForm(sooner(actual), sooner(expected)))

const hasForm = (actual: string, expected: string): boolean => {
  const form = seen(expected)
    .split('…')
    .map((text) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
  return new RegExp(`^${form.join('[^\\n]+')}$`).test(actual)
}

/** Every step that printed something else, at once: a run takes a while. */
function assertPrinted(printed: readonly string[], group: readonly Step[]): void {
  const shown = group.map(({ command, expected }, at) => ({ command, expected, actual: seen(printed[at] ?? '') }))
  const wrong = shown.filter(({ actual, expected }) => !isPrinted(actual, expected))
  assert.equal(
    wrong.map(({ command, actual }) => `$ ${command}\n${actual}`).join('\n'),
    wrong.map(({ command, expected }) => `$ ${command}\n${expected}`).join('\n'),
  )
}

/** A checkout as `npm start` leaves it, so that the tour has its own `.svc3/` in the place where a reader has it. */
async function makeCheckout(): Promise<string> {
  const folder = await fs.realpath(await makeFolder())
  await fs.cp(path.join(root, 'bin'), path.join(folder, 'bin'), { recursive: true })
  const isCache = (file: string): boolean => path.basename(file) === 'cache'
  await fs.cp(path.join(root, 'dist'), path.join(folder, 'dist'), { recursive: true, filter: (file) => !isCache(file) })
  await fs.copyFile(path.join(root, 'package.json'), path.join(folder, 'package.json'))
  for (const name of ['.node', 'node_modules', 'scripts'])
    await fs.symlink(path.join(root, name), path.join(folder, name))
  return folder
}

const startIn = (folder: string): Promise<DevServer> =>
  startDev(path.join(folder, '.svc3'), {
    command: ['sh', '-c', 'cd "$0" && exec bin/svc3 dev "$@" 2>&1', folder],
    env: quietEnvironment(folder),
  })

/** Nothing of the person who runs the tests: no other server, no colours. */
const quietEnvironment = (folder: string): Record<string, string> => ({
  SVC3_DATA: '',
  SVC3_API_URL: '',
  SVC3_TOKEN: '',
  SVC3_DEFAULT_NAMESPACE: '',
  ORKA_DEFAULT_NAMESPACE: '',
  XDG_CONFIG_HOME: '',
  HOME: folder,
  NO_COLOR: '1',
})

/** Runs the commands in one shell on a terminal; returns what each printed, both streams as they came. */
async function runInTerminal(folder: string, commands: readonly string[]): Promise<string[]> {
  const mark = '\x1e'
  // Each command finds in `$?` what the one before it left there.
  const lines = commands.map((command) => `status=$?; printf '\\036'; (exit $status)\n${command}\n`)
  const file = path.join(folder, 'tour.sh')
  await fs.writeFile(file, lines.join(''))
  const child = spawn('script', ['-qec', `sh ${file}`, '/dev/null'], {
    cwd: folder,
    env: { ...process.env, ...quietEnvironment(folder) },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  await once(child, 'close')
  const printed = output.replaceAll('\r\n', '\n').split(mark)
  assert.equal(printed.shift(), '')
  return printed
}

describe("the README's tour", () => {
  let folder: string
  let server: DevServer | undefined
  const registryAddress = ownAddress()
  before(async () => {
    folder = await makeCheckout()
    await seedTiny(path.join(folder, '.svc3/images'), ['amd64', 'arm64'])
  })
  after(async () => {
    await server?.[Symbol.asyncDispose]()
    await fs.rm(folder, { recursive: true, force: true })
  })

  /** The server is where the system put it, the registry at an address where nobody else has that port. */
  const here = (text: string): string =>
    text
      .replaceAll('http://127.0.0.1:8080', server?.apiUrl ?? '')
      .replaceAll('127.0.0.1:15000', `${registryAddress}:15000`)

  async function startServer(): Promise<string> {
    server = await startIn(folder)
    return server.output()
  }

  async function stopServer(): Promise<string> {
    assert.ok(server, 'nothing to stop')
    const before = server.output().length
    const closed = once(server.process, 'close')
    assert.deepEqual(await server.kill('SIGINT'), { code: 0, signal: null })
    await closed
    return server.output().slice(before)
  }

  it('the tour of the README prints what stands there', { timeout: 600_000 }, async () => {
    assert.ok(steps.length >= 75, `only ${steps.length} commands were found`)
    for (let rest = steps; rest.length > 0; ) {
      const [first] = rest as [Step]
      const end = rest.findIndex(({ command }) => command === start || command === stop)
      const group = rest.slice(0, end === 0 ? 1 : end === -1 ? rest.length : end)
      const printed =
        first.command === start
          ? [await startServer()]
          : first.command === stop
            ? [await stopServer()]
            : await runInTerminal(
                folder,
                group.map(({ command }) => here(command)),
              )
      assert.equal(printed.length, group.length)
      assertPrinted(
        printed,
        group.map(({ command, expected }) => ({ command, expected: here(expected) })),
      )
      rest = rest.slice(group.length)
    }
  })
})
