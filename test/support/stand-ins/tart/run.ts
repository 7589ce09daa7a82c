// `tart run` of the stand-in: QEMU as a child that dies with it, tart's signals (SIGINT ends, SIGUSR1 suspends, SIGUSR2 is
// the power button; SIGHUP stands for a shutdown from inside the guest), and the screen's address as tart prints it.
import { type ChildProcess, spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { failStart, readFaults, restoreText } from './faults.ts'
import {
  addressOf,
  enterArp,
  lock,
  readConfig,
  readNvram,
  StandInError,
  stateOf,
  type VmConfig,
  vmFolder,
} from './folder.ts'

const stateFile = 'state.vzvmsave'
/** tart binds a socket here after the start; only its file counts for the driver. */
const controlFile = 'control.sock'
const agentFile = 'stand-in.guest-agent'
const firmware = '/usr/share/qemu-efi-aarch64/QEMU_EFI.fd'
const guestPorts = [22, 5_900, 8_080]
const password = 'able-baker-charlie-dog'

export async function runVm(name: string, options: Readonly<Record<string, string | boolean | undefined>>) {
  const folder = vmFolder(name)
  const config = readConfig(name)
  const { state } = stateOf(name)
  if (state === 'running') throw new StandInError(`VM "${name}" is already running!`, 2)
  const isMac = config.os !== 'linux'
  if (options.suspendable && !isMac) throw new StandInError('You can only suspend macOS VMs', 64)
  let isTold = false
  const opened = Promise.withResolvers<Qmp>()
  // Before it can be seen running: Node would take the first SIGUSR1 for a debugger's.
  for (const [signal, work] of Object.entries({
    SIGINT: async (qmp: Qmp): Promise<void> => {
      isTold = true
      await qmp.execute('quit')
    },
    SIGUSR1: async (qmp: Qmp): Promise<void> => {
      const refusal = readFaults().suspend
      if (refusal !== undefined) return refuseSuspend(refusal)
      await suspend(qmp)
      isTold = true
      await qmp.execute('quit')
    },
    // macOS asks its user.
    SIGUSR2: async (qmp: Qmp) => {
      if (!isMac) await qmp.execute('system_powerdown')
    },
    SIGHUP: (qmp: Qmp) => qmp.execute('system_powerdown'),
  }))
    process.on(signal, () => void opened.promise.then(work).catch((error: Error) => fail(error)))
  const { resolver = options['net-bridged'] ? 'arp' : 'dhcp', arp, restore } = readFaults()
  lock(name, config, resolver)
  const arpFile = enterArp(config, arp)
  process.on('exit', () => fs.rmSync(arpFile, { force: true }))
  const isResumed = state === 'suspended'
  if (isResumed && restore) throw new StandInError(restoreText)
  await failStart()
  const hasScreen = options['vnc-experimental'] === true
  process.chdir(folder)
  if (!isResumed) noteAgent(false)
  const words = qemuWords(name, config, { disk: options.disk, isResumed, hasScreen })
  // Otherwise it would outlive this process.
  const qemu = spawn('setpriv', ['--pdeathsig', 'KILL', 'qemu-system-aarch64', ...words], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exited = new Promise<number>((resolve) => qemu.on('exit', (code) => resolve(code ?? 1)))
  const qmp = openQmp(qemu)
  opened.resolve(qmp)
  const code = exited.then((ended) => (isTold ? 0 : ended))
  await Promise.race([begin(qmp, { isResumed, hasScreen }), code])
  process.exit(await code)
}

/** tart prints it to its standard output. The framework may have written a part of the state. */
function refuseSuspend(reason: string): never {
  fs.writeFileSync(stateFile, 'a part')
  process.stdout.write(
    `pausing VM to take a snapshot...\ncreating a snapshot...\nFailed to suspend the VM: ${reason}\n`,
  )
  process.exit(1)
}

function fail(error: Error): never {
  process.stderr.write(`${error.message}\n`)
  process.exit(1)
}

async function begin(qmp: Qmp, { isResumed, hasScreen }: { isResumed: boolean; hasScreen: boolean }): Promise<void> {
  await qmp.execute('qmp_capabilities')
  if (isResumed) {
    process.stdout.write('restoring VM state from a snapshot...\n')
    await until(async () => ((await qmp.execute('query-status')) as { status: string }).status !== 'inmigrate')
    fs.rmSync(stateFile)
  }
  await qmp.execute('cont')
  if (hasScreen) await openScreen(qmp)
  fs.writeFileSync(controlFile, '')
}

async function openScreen(qmp: Qmp): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, readFaults().vncLate ?? 0))
  // VNC uses only the first eight characters.
  await qmp.execute('set_password', { protocol: 'vnc', password: password.slice(0, 8) })
  const { service } = (await qmp.execute('query-vnc')) as { service: string }
  process.stdout.write(`VNC server is running at vnc://:${password}@127.0.0.1:${service}\n`)
}

async function suspend(qmp: Qmp): Promise<void> {
  await qmp.execute('stop')
  await qmp.execute('migrate-set-parameters', { 'max-bandwidth': 2 ** 40 })
  await qmp.execute('migrate', { uri: `exec:cat > ${stateFile}.new` })
  await until(async () => {
    const { status } = (await qmp.execute('query-migrate')) as { status: string }
    if (status === 'failed') throw new Error('the stand-in could not save the memory')
    return status === 'completed'
  })
  fs.renameSync(`${stateFile}.new`, stateFile)
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 10))
}

interface Around {
  readonly disk: string | boolean | undefined
  readonly isResumed: boolean
  readonly hasScreen: boolean
}

function qemuWords(name: string, config: VmConfig, { disk, isResumed, hasScreen }: Around): readonly string[] {
  const { cpuCount, memorySize, macAddress, display } = config
  const forwards = openablePorts().map((port) => `hostfwd=tcp:${addressOf(macAddress)}:${port}-:${port}`)
  const second = typeof disk === 'string' ? disk.replace(/:ro$/, '') : undefined
  return [
    ...['-nodefaults', '-no-user-config', '-S', '-machine', 'virt', '-accel', 'tcg,thread=multi', '-cpu', 'cortex-a57'],
    ...['-smp', String(cpuCount), '-m', `${memorySize / 2 ** 20}M`, '-serial', 'file:console.log'],
    ...['-chardev', 'stdio,id=qmp,signal=off', '-mon', 'chardev=qmp,mode=control', '-device', 'virtio-rng-pci'],
    ...bootWords(name),
    ...['-drive', 'file=disk.img,format=raw,if=none,id=disk', '-device', 'virtio-blk-pci,drive=disk,bootindex=1'],
    ...(second ? ['-drive', `file=${second},format=raw,if=virtio,readonly=on`] : []),
    ...['-netdev', ['user', 'id=net', 'ipv6=off', ...forwards].join(',')],
    ...['-device', `virtio-net-pci,netdev=net,mac=${macAddress},romfile=`],
    ...(hasScreen
      ? [
          '-vnc',
          '127.0.0.1:0,to=999,password=on',
          '-device',
          `virtio-gpu-pci,xres=${display.width},yres=${display.height}`,
          '-device',
          'virtio-keyboard-pci',
        ]
      : ['-display', 'none']),
    ...['-chardev', 'socket,id=agent,path=agent.sock,server=on,wait=off', '-device', 'virtio-serial-pci,max_ports=2'],
    ...['-device', 'virtserialport,id=port,chardev=agent,name=org.qemu.guest_agent.0'],
    ...(isResumed ? ['-incoming', `exec:cat ${stateFile}`] : []),
  ]
}

/** Ports below 1024 usually need root; a guest runs without them. */
function openablePorts(): readonly number[] {
  const first = Number(fs.readFileSync('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8'))
  return process.getuid?.() === 0 ? guestPorts : guestPorts.filter((port) => port >= first)
}

function bootWords(name: string): readonly string[] {
  const bundle = readNvram(name)
  if (!bundle) return ['-bios', firmware]
  const files = path.join(vmFolder(name), 'stand-in-boot')
  fs.mkdirSync(files, { recursive: true })
  fs.writeFileSync(path.join(files, 'kernel'), bundle.kernel)
  if (bundle.initrd) fs.writeFileSync(path.join(files, 'initrd'), bundle.initrd)
  return [
    ...['-kernel', path.join(files, 'kernel'), '-append', bundle.commandLine],
    ...(bundle.initrd ? ['-initrd', path.join(files, 'initrd')] : []),
  ]
}

interface Qmp {
  execute(command: string, words?: object): Promise<unknown>
}

interface Said {
  readonly QMP?: object
  readonly return?: unknown
  readonly error?: { readonly desc: string }
  readonly event?: string
  readonly data?: { readonly open?: boolean }
}

/** Records whether the guest has a guest agent. */
function noteAgent(isThere: boolean): void {
  if (isThere) fs.writeFileSync(agentFile, '')
  else fs.rmSync(agentFile, { force: true })
}

/** Commands are answered in order; events are skipped. */
function openQmp({ stdin, stdout }: ChildProcess): Qmp {
  if (!stdin || !stdout) throw new Error('QEMU has no standard input or output')
  const waiting: { resolve(value: unknown): void; reject(error: Error): void }[] = []
  const greeted = Promise.withResolvers<void>()
  stdin.on('error', () => undefined)
  createInterface({ input: stdout }).on('line', (line) => {
    const said = JSON.parse(line) as Said
    if (said.QMP) greeted.resolve()
    else if (said.event === 'VSERPORT_CHANGE') noteAgent(said.data?.open === true)
    else if (said.error) waiting.shift()?.reject(new Error(said.error.desc))
    else if ('return' in said) waiting.shift()?.resolve(said.return)
  })
  return {
    async execute(command, words) {
      await greeted.promise
      const { promise, resolve, reject } = Promise.withResolvers<unknown>()
      waiting.push({ resolve, reject })
      stdin.write(`${JSON.stringify({ execute: command, ...(words && { arguments: words }) })}\n`)
      return promise
    },
  }
}
