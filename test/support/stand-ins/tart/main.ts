// A STAND-IN for tart, for tests on machines other than Macs: tart's command line and folder layout, as far as the driver
// uses them, on top of qemu-system-aarch64. It proves nothing about Apple's framework: docs/reference/drivers.md. Linux
// only. Each guest has an address in 127.0.0.0/8, with ports 22, 5900 and 8080.
import fs from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { tartCommands } from '../../../../src/drivers/apple/interface.ts'
import { readFaults } from './faults.ts'
import {
  addressOf,
  readConfig,
  StandInError,
  stateOf,
  type VmConfig,
  vmFolder,
  vmsFolder,
  writeConfig,
} from './folder.ts'
import { collectGarbage, createUser, installMacos, pushVm } from './installation.ts'
import { cloneImage } from './registry.ts'
import { runVm } from './run.ts'

const version = '2.35.0-stand-in'
const gigabyte = 1_000_000_000

type Options = Readonly<Record<string, string | boolean | undefined>>
type Command = (name: string, options: Options, rest: readonly string[]) => Promise<void> | void

const commands: Readonly<Record<string, Command>> = {
  run: (name, options) =>
    typeof options['provisioning-opts'] === 'string'
      ? createUser(name, options['provisioning-opts'])
      : runVm(name, options),

  /** As in tart, SIGINT ends the machine at once: there is no way to ask a guest. */
  async stop(name, { timeout = '30' }) {
    const { state, pid } = stateOf(name)
    if (state === 'suspended') return fs.rmSync(path.join(vmFolder(name), 'state.vzvmsave'))
    if (state === 'stopped') throw new StandInError(`VM "${name}" is not running`, 2)
    process.kill(pid, 'SIGINT')
    const untilMs = Date.now() + Number(timeout) * 1_000
    while (stateOf(name).state === 'running') {
      if (Date.now() > untilMs) return void process.kill(pid, 'SIGKILL')
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  },

  suspend(name) {
    const { state, pid } = stateOf(name)
    if (state !== 'running') throw new StandInError(`VM "${name}" is not running`, 2)
    process.kill(pid, 'SIGUSR1')
  },

  set(name, options) {
    const config = readConfig(name)
    writeConfig(name, {
      ...config,
      cpuCount: atLeast('CPU cores', options.cpu, config.cpuCount, config.cpuCountMin, config),
      memorySize: atLeast('bytes of memory', options.memory, config.memorySize, config.memorySizeMin, config, 2 ** 20),
      display: displayOf(options.display) ?? config.display,
      ...(options['random-mac'] && { macAddress: randomMac() }),
      ...(options['random-serial'] && { ecid: requireMac(config) && randomText() }),
    })
    const bytes = Number(options['disk-size'] ?? 0) * gigabyte
    const disk = path.join(vmFolder(name), 'disk.img')
    if (bytes > 0 && bytes < fs.statSync(disk).size) throw new StandInError('the disk cannot be made smaller')
    if (bytes > 0) fs.truncateSync(disk, bytes)
  },

  get(name) {
    const { cpuCount, memorySize, display } = readConfig(name)
    const { state } = stateOf(name)
    const { size } = fs.statSync(path.join(vmFolder(name), 'disk.img'))
    const shown = { CPU: cpuCount, Memory: memorySize / 2 ** 20, Disk: Math.floor(size / gigabyte), Display: display }
    print({ ...shown, Running: state === 'running', State: state })
  },

  list(_, { source = 'local' }) {
    if (source !== 'local' && source !== 'oci') throw new StandInError(`'${source}' is not a valid <source>`, 64)
    if (source === 'oci') return print([])
    const names = fs.existsSync(vmsFolder()) ? fs.readdirSync(vmsFolder()) : []
    print(names.map((name) => ({ Name: name, Source: 'local', State: stateOf(name).state })))
  },

  /** A second passes after each miss, also with `--wait 0`. */
  async ip(name, { resolver = 'dhcp', wait = '0' }) {
    const untilMs = Date.now() + Number(wait) * 1_000
    do {
      const isThere = fs.existsSync(path.join(vmFolder(name), `stand-in.${resolver}`)) && isBooted(name)
      if (stateOf(name).state === 'running' && isThere)
        return void process.stdout.write(`${addressOf(readConfig(name).macAddress)}\n`)
      await new Promise((resolve) => setTimeout(resolve, 1_000))
    } while (Date.now() < untilMs)
    throw new StandInError('no IP address found, is your VM running?')
  },

  /** Linux needs no installer: an empty disk and an empty NVRAM. */
  async create(name, { linux, 'from-ipsw': ipsw, 'disk-size': gigabytes = '50' }) {
    if (typeof ipsw === 'string') return installMacos(name, ipsw, Number(gigabytes))
    if (!linux) throw new StandInError('Error: Please specify either a --from-ipsw or --linux option!', 64)
    fs.mkdirSync(vmFolder(name), { recursive: true })
    fs.writeFileSync(path.join(vmFolder(name), 'disk.img'), '')
    fs.truncateSync(path.join(vmFolder(name), 'disk.img'), Number(gigabytes) * gigabyte)
    fs.writeFileSync(path.join(vmFolder(name), 'nvram.bin'), Buffer.alloc(131_072))
    const memory = 4_096 * 2 ** 20
    const sizes = { cpuCountMin: 4, cpuCount: 4, memorySizeMin: memory, memorySize: memory }
    const display = { width: 1_024, height: 768 }
    writeConfig(name, { version: 1, os: 'linux', arch: 'arm64', ...sizes, macAddress: randomMac(), display })
  },

  /** Nothing is cached: the clone fetches the image. */
  pull: () => undefined,
  clone: (reference, _, [name = '']) => cloneImage(reference, name),
  push: (name, { insecure }, [remote = '']) => pushVm(name, remote, insecure === true),

  delete(name) {
    readConfig(name)
    fs.rmSync(vmFolder(name), { recursive: true })
  },

  /** The guest agent can flush; the command that shuts a Mac down from inside presses the power button here. */
  async exec(name, { i: isInteractive }, rest) {
    const { state, pid } = stateOf(name)
    if (state !== 'running') throw new StandInError(`VM "${name}" is not running`, 2)
    if (readFaults().execHangs || !isBooted(name)) return new Promise((resolve) => setTimeout(resolve, 600_000))
    if (!fs.existsSync(path.join(vmFolder(name), 'stand-in.guest-agent')))
      throw new StandInError('Failed to connect to the VM using its control socket, is the Tart Guest Agent running?')
    process.chdir(vmFolder(name))
    if (isInteractive) await obey(rest)
    else if (rest.join(' ') === 'sudo -n true') return
    else if (rest.join(' ') === 'sync') await flush()
    else if (rest.includes('shutdown')) process.kill(pid, 'SIGHUP')
    else throw new StandInError('the guest agent of the stand-in knows "sync" and "shutdown" only')
  },
}

function isBooted(name: string): boolean {
  const startedMs = fs.statSync(path.join(vmFolder(name), 'stand-in.pid')).mtimeMs
  return Date.now() - startedMs >= (readFaults().bootSeconds ?? 0) * 1_000
}

/** A script for the guest is only recorded. The test has written what it prints, and with which code it ends. */
async function obey(words: readonly string[]): Promise<void> {
  const script = await textOf(process.stdin)
  fs.appendFileSync('stand-in.scripts', `${JSON.stringify({ words, script })}\n`)
  if (!fs.existsSync('stand-in.answer')) return
  const [code = '0', ...lines] = fs.readFileSync('stand-in.answer', 'utf8').split('\n')
  process.stdout.write(lines.join('\n'))
  process.exitCode = Number(code)
}

/** Freeze and thaw in one message, so that no crash leaves the guest frozen. */
function flush(): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const socket = net.connect('agent.sock')
  const timer = setTimeout(() => socket.destroy(new Error('the guest agent does not answer')), 3_000)
  let answers = 0
  socket.on('error', reject)
  socket.on('data', (text) => {
    answers += text.toString('latin1').split('\n').length - 1
    if (answers >= 2) socket.end(resolve)
  })
  socket.on('close', () => clearTimeout(timer))
  socket.write('{"execute":"guest-fsfreeze-freeze"}\n{"execute":"guest-fsfreeze-thaw"}\n')
  return promise
}

function atLeast(what: string, asked: unknown, now: number, least: number, { os }: VmConfig, unit = 1): number {
  if (asked === undefined) return now
  const wanted = Number(asked) * unit
  if (os !== 'linux' && wanted < least)
    throw new StandInError(
      `LessThanMinimalResourcesError: VM should have ${least} ${what} at minimum (requested ${wanted})`,
    )
  return wanted
}

/** The real tart crashes. */
function requireMac({ os }: VmConfig): true {
  if (os === 'linux') throw new StandInError('Could not cast value of type Linux to Darwin', 133)
  return true
}

function displayOf(text: unknown): VmConfig['display'] | undefined {
  const [, width, height, unit] = /^(\d+)x(\d+)(pt|px)?$/.exec(String(text)) ?? []
  // Without a unit, an earlier one is cleared.
  return width === undefined
    ? undefined
    : { width: Number(width), height: Number(height), unit: unit === 'px' || unit === 'pt' ? unit : undefined }
}

const randomText = (): string => Buffer.from(crypto.randomUUID()).toString('base64')
const randomMac = (): string => `02${crypto.randomUUID().slice(0, 8).replace(/../g, ':$&')}:01`
const print = (value: unknown): void => void process.stdout.write(`${JSON.stringify(value)}\n`)

/** Each command has its own options, as of tart 2.35. */
function parse(command: string, words: readonly string[]) {
  // The driver does not use pull and clone; the acceptance run does.
  const { uses, has } = tartCommands[command] ?? { uses: 'insecure', has: '' }
  const names = `${uses} ${has}`.split(' ').filter((name) => name !== '')
  const options = Object.fromEntries(
    names.map((name) => [
      name.replace('=', ''),
      {
        type: name.endsWith('=') ? ('string' as const) : ('boolean' as const),
        ...(name.length === 1 && { short: name }),
        ...(name === 'timeout=' && { short: 't' }),
      },
    ]),
  )
  // What follows the name belongs to the guest.
  const nameAt = words.findIndex((word) => !word.startsWith('-'))
  const args = command === 'exec' ? words.toSpliced(nameAt + 1, 0, '--') : [...words]
  try {
    return parseArgs({ args, options, allowPositionals: true })
  } catch (error) {
    throw new StandInError(`Error: Unknown option. ${(error as Error).message}\nUsage: tart ${command}`, 64)
  }
}

try {
  const [command = '', ...words] = process.argv.slice(2)
  if (command === '--version') process.stdout.write(`${version}\n`)
  else {
    const run = commands[command]
    if (!run) throw new StandInError(`the stand-in for tart does not know "${command}"`, 64)
    collectGarbage()
    if (words[0] === '--help') {
      const { uses = '', has = '' } = tartCommands[command] ?? {}
      process.stdout.write(`${uses} ${has}`.replaceAll(/\S+/g, (option) => `--${option}\n`))
      process.exit()
    }
    const { values, positionals } = parse(command, words)
    const [name = '', ...rest] = positionals
    if (name === '' && command !== 'list') throw new StandInError('missing the name of a VM', 64)
    if (rest.length > (command === 'push' || command === 'clone' ? 1 : 0) && command !== 'exec')
      throw new StandInError(`Error: ${rest.length} unexpected arguments: ${rest.join(' ')}`, 64)
    await run(name, values as Options, rest)
  }
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`)
  process.exitCode = error instanceof StandInError ? error.exitCode : 1
}
