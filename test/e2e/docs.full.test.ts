// The console blocks of README.md and docs/: every command runs in a terminal and prints what the page shows. Each page
// has a separate service on fresh data, as `npm start` leaves it. `…` stands for what differs from run to run, within
// one line.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import path from 'node:path'
import { describe, it } from 'node:test'
import { type GuestName, guests } from '../../packages/tiny-guests/build.ts'
import { exec } from '../../src/platform/exec.ts'
import { seedGuests } from '../support/guests/guest.ts'
import { type DevServer, makeFolder, root, startDev } from '../support/processes/dev-server.ts'
import { tooOldKubectl } from '../support/tools/kubectl-age.ts'
import { ownAddress } from '../support/tools/own-address.ts'

interface Step {
  readonly command: string
  readonly expected: string
}

/** What a person does in the server's own terminal; every other command is the shell's. */
const start = 'npm start'
const stop = '^C'

interface Page {
  readonly file: string
  readonly steps: readonly Step[]
}

async function readPages(): Promise<Page[]> {
  const pages: Page[] = []
  for await (const file of fs.glob(['README.md', 'docs/**/*.md'], { cwd: root })) {
    const text = await fs.readFile(path.join(root, file), 'utf8')
    const steps = [...text.matchAll(/^```console\n(.*?)^```$/gms)].flatMap((block) => stepsOf(block[1] ?? ''))
    if (steps.length > 0) pages.push({ file, steps })
  }
  return pages.sort((a, b) => b.steps.length - a.steps.length)
}

/** A command begins with `$ ` (or is Ctrl-C), continues while its lines end in a backslash; its output follows. */
function stepsOf(block: string): Step[] {
  const pieces = block.replaceAll(/^\^C$/gm, `$$ ${stop}`).split(/^\$ /m)
  assert.equal(pieces.shift(), '', `a console block begins with its output:\n${block}`)
  return pieces.map((piece) => {
    const command = /^(?:.*\\\n)*.*\n/.exec(piece)?.[0] ?? ''
    return { command: command.trimEnd(), expected: piece.slice(command.length).trimEnd() }
  })
}

/** What moves the cursor begins with it. */
const esc = '\x1b'
/** A line is emptied, the cursor goes up, or a line ends; all else is text. */
const moves = new RegExp(`${esc}\\[2K|${esc}\\[\\d+A|[\\r\\n]|[^\\r\\n${esc}]+|${esc}`, 'g')

/** What stays on a terminal: progress is drawn over several lines, and taken back. */
function onScreen(text: string): string {
  const lines = ['']
  let at = 0
  for (const [part] of text.matchAll(moves)) {
    if (part === '\n') lines[++at] ??= ''
    else if (part.endsWith('[2K')) lines[at] = ''
    else if (part.startsWith(esc)) at -= Number.parseInt(part.slice(2), 10) || 0
    else if (part !== '\r') lines[at] += part
  }
  return lines.join('\n')
}

/** Said where the machine was slow; no page shows it. */
const heldUp = /^\{.*"the event loop was held: nothing was answered"\}\n/gm

/** Ports are whatever this machine had free. */
const seen = (text: string): string =>
  onScreen(text)
    .replaceAll(heldUp, '')
    .replaceAll(/\b(?:88[2-9]\d|59\d\d|60\d\d)\b/g, '9999')
    .trimEnd()

/** On a slow machine, what a page has as "just now" is a minute old, and its column wider. */
const aMinuteAgo = /\b\d+ min ago\b/
const sooner = (text: string): string =>
  text.replaceAll(new RegExp(aMinuteAgo, 'g'), 'just now').replaceAll(/ {2,}/g, '  ')

const isPrinted = (actual: string, expected: string): boolean =>
  hasForm(actual, expected) || (aMinuteAgo.test(actual) && hasForm(sooner(actual), sooner(expected)))

/** `…` alone on a line stands for any number of lines, elsewhere for a part of one. */
const hasForm = (actual: string, expected: string): boolean => {
  const lines = (text: string): string =>
    text
      .split('…')
      .map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
      .join('[^\\n]+')
  return new RegExp(`^${seen(expected).split(/^…$/m).map(lines).join('[^]*')}$`).test(actual)
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

/** A checkout as `npm start` leaves it, so that a page has its own `.svc3/` in the place where a reader has it. */
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
  PATH: `${path.join(folder, 'bin')}:${process.env.PATH}`,
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
async function runInTerminal(folder: string, commands: readonly string[], signal: AbortSignal): Promise<string[]> {
  const mark = '\x1e'
  // Each command finds in `$?` what the one before it left there.
  const lines = commands.map((command) => `status=$?; printf '\\036'; (exit $status)\n${command}\n`)
  const file = path.join(folder, '.commands.sh')
  await fs.writeFile(file, lines.join(''))
  const child = spawn('script', ['-qec', `sh ${file}`, '/dev/null'], {
    cwd: folder,
    env: { ...process.env, ...quietEnvironment(folder) },
    stdio: ['pipe', 'pipe', 'inherit'],
    signal,
  })
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  // A command that waits for input would wait for ever.
  await once(child, 'close', { signal })
  const printed = output.replaceAll('\r\n', '\n').split(mark)
  assert.equal(printed.shift(), '')
  return printed
}

const pages = await readPages()

describe('pages with console blocks', { concurrency: 2 }, () => {
  it('the pages have their console blocks', () => {
    assert.ok(pages.length >= 7, `only ${pages.length} pages were found`)
    const count = pages.reduce((sum, { steps }) => sum + steps.length, 0)
    assert.ok(count >= 120, `only ${count} commands were found`)
  })

  for (const { file, steps } of pages) {
    const skip = steps.some(({ command }) => command.startsWith('kubectl ')) && tooOldKubectl()
    it(`${file} prints what it shows`, { timeout: 900_000, skip }, async ({ signal }) => {
      await using session = await openSession(steps, signal)
      if (steps[0]?.command !== start) await session.run([{ command: start, expected: '' }])
      for (let rest = steps; rest.length > 0; ) {
        const end = rest.findIndex(({ command }) => command === start || command === stop)
        const group = rest.slice(0, end === 0 ? 1 : end === -1 ? rest.length : end)
        const printed = await session.run(group)
        assert.equal(printed.length, group.length)
        assertPrinted(
          printed,
          group.map(({ command, expected }) => ({ command, expected: session.here(expected) })),
        )
        rest = rest.slice(group.length)
      }
    })
  }
})

/** VMs outlive their service, and so would those of a page that failed half-way. */
async function endProcessesOf(folder: string): Promise<void> {
  for (const pid of (await fs.readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const line = await fs.readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
    if (line.includes(folder)) await exec('kill', ['-9', pid]).catch(() => undefined)
  }
}

interface Session extends AsyncDisposable {
  /** A page's text with the addresses of this run. */
  here(text: string): string
  /** `npm start` alone, Ctrl-C alone, or commands of one shell. */
  run(group: readonly Step[]): Promise<string[]>
}

/** The built-in images that a page names are there already: to build them is of other tests. */
async function openSession(steps: readonly Step[], signal: AbortSignal): Promise<Session> {
  const folder = await makeCheckout()
  const isNamed = (name: string): boolean => steps.some(({ command }) => command.includes(name))
  await seedGuests(path.join(folder, '.svc3/images'), (Object.keys(guests) as GuestName[]).filter(isNamed))
  let server: DevServer | undefined
  const registryAddress = ownAddress()

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

  /** The server is where the system put it, the registry at an address where that port is unused. */
  const here = (text: string): string =>
    text
      .replaceAll('http://127.0.0.1:8080', server?.apiUrl ?? '')
      .replaceAll('127.0.0.1:15000', `${registryAddress}:15000`)

  return {
    here,
    run: async (group) => {
      const commands = group.map(({ command }) => command)
      if (commands[0] === start) return [await startServer()]
      if (commands[0] === stop) return [await stopServer()]
      return runInTerminal(folder, commands.map(here), signal)
    },
    [Symbol.asyncDispose]: async () => {
      await server?.[Symbol.asyncDispose]()
      await endProcessesOf(folder)
      await fs.rm(folder, { recursive: true, force: true })
    },
  }
}
