// Turns a VM's specification into QEMU's arguments. Pure. Nothing secret goes in: metadata and userdata are files.
import type { VmSpec } from '../driver.ts'
import type { Accelerator } from './accel.ts'
import { accelArgument, cpuFor, qemuArchitectures } from './architectures.ts'
import { agentDevice, agentSocket, qmpSocket } from './control/sockets.ts'
import { baseNode, remoteNode } from './disks/chain.ts'
import { variablesFile } from './firmware.ts'
import {
  type MacosSettings,
  macosCores,
  macosCpu,
  macosGlobals,
  macosNetworkDevice,
  macosScreen,
  macosSerial,
  smcFile,
} from './macos.ts'
import { instanceOf, macAddress } from './network/identity.ts'
import { metadataCommand } from './network/metadata.ts'
import { listenAddress, type NetworkKind, networkArgument, sealedPrefix } from './network/network.ts'

export interface LaunchSettings {
  readonly accelerator: Accelerator
  readonly network: NetworkKind
  /** A folder with a short path, for sockets. */
  readonly runtime: string
  /** The disk with everything below it, as -blockdev takes it. */
  readonly diskNode: Readonly<Record<string, unknown>>
  /** Set if the disk boots by UEFI. */
  readonly uefiCode?: string
  /** Set for macOS on amd64: the operator's settings of this node. */
  readonly macos?: MacosSettings
  /** Set if the ISO is no CD: a disk of an installer, for example Apple's. */
  readonly isoIsDisk?: boolean
}

/** Relative to the VM's folder, where QEMU runs. */
export const consoleFile = 'console.log'

/**
 * Limits what a guest can do that breaks out into QEMU. Child processes are allowed because the metadata script is one; it
 * begins with a setsid that `elevateprivileges=deny` would refuse. no_new_privs rules out new privileges in any case.
 */
const sandbox = process.platform === 'linux' ? ['-sandbox', 'on,obsolete=deny,resourcecontrol=deny'] : []

const firstScreenPort = 5_900
/** The serial numbers that the server accepts. A comma would begin another property. */
const serialForm = /^[A-Za-z0-9._+/-]{1,64}$/

/** The program with its arguments, after the command that seals it. Throws for what QEMU cannot do. */
export function qemuArguments(vm: VmSpec, around: LaunchSettings): readonly string[] {
  const settings = qemuArchitectures[vm.architecture]
  return [
    ...(around.network === 'sealed' ? sealedPrefix() : []),
    settings.program,
    ...['-nodefaults', '-no-user-config', '-no-shutdown', '-name', `svc3-${comma(vm.name)}`],
    ...sandbox,
    ...['-machine', [settings.machine(vm.cpu), ...firmwareProperties(around)].join(',')],
    ...['-accel', accelArgument(vm.architecture, around.accelerator), '-cpu', processor(vm, around)],
    ...['-smp', around.macos ? macosCores(vm.cpu) : String(vm.cpu), '-m', `${vm.memoryMiB}M`, '-rtc', 'base=utc'],
    ...['-qmp', `unix:${qmpSocket(around.runtime)},server=on,wait=off`],
    ...['-chardev', `file,id=console,path=${consoleFile},append=on`, '-serial', 'chardev:console'],
    ...device('virtio-rng-pci'),
    ...(around.macos ? macos(around, around.macos) : []),
    ...firmware(around),
    ...boot(vm),
    ...identity(vm, around),
    ...disk(vm, around),
    ...bootDisk(around),
    ...iso(vm, around),
    ...network(vm, around),
    ...screen(vm, around),
    ...guestAgent(around),
  ]
}

const device = (value: string): readonly string[] => ['-device', value]
const node = (value: Readonly<Record<string, unknown>>): readonly string[] => ['-blockdev', JSON.stringify(value)]
/** QEMU ends a value at a comma; two commas stand for one. */
const comma = (text: string): string => text.replaceAll(',', ',,')

const processor = ({ architecture }: VmSpec, { accelerator, macos }: LaunchSettings): string =>
  macos ? macosCpu(accelerator, macos) : cpuFor(architecture, accelerator)

const macos = ({ runtime }: LaunchSettings, { smcKey }: MacosSettings): readonly string[] => [
  ...macosGlobals,
  ...(smcKey === undefined ? [] : ['-readconfig', smcFile(runtime)]),
]

/** First in the boot order, but after the guest's disk among the devices, so that the disk remains the first one. */
function bootDisk({ macos }: LaunchSettings): readonly string[] {
  const { file: disk, format = 'raw' } = macos?.openCore ?? {}
  if (disk === undefined) return []
  const opened = node({ 'node-name': 'boot-disk', ...baseNode({ disk, format }) })
  return [...opened, ...device('virtio-blk-pci,drive=boot-disk,bootindex=0')]
}

const firmwareProperties = ({ uefiCode }: LaunchSettings): readonly string[] =>
  uefiCode === undefined ? [] : ['pflash0=firmware-code', 'pflash1=firmware-variables']

const firmware = ({ uefiCode }: LaunchSettings): readonly string[] =>
  uefiCode === undefined
    ? []
    : [
        ...node({ 'node-name': 'firmware-code', ...baseNode({ disk: uefiCode, format: 'raw' }) }),
        ...node({
          'node-name': 'firmware-variables',
          driver: 'raw',
          file: { driver: 'file', filename: variablesFile },
        }),
      ]

function boot({ image }: VmSpec): readonly string[] {
  if (image.boot.kind === 'firmware') return []
  const { kernel, initrd, commandLine } = image.boot
  return ['-kernel', kernel, ...(initrd === undefined ? [] : ['-initrd', initrd]), '-append', commandLine]
}

const uuidForm = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/**
 * The identity of the VM. A guest that resumes from memory notices a change: kernels know vmgenid and reseed their random
 * numbers. QEMU has it for amd64 only.
 */
function identity({ uid, systemSerial, architecture }: VmSpec, { macos }: LaunchSettings): readonly string[] {
  const hasGeneration = architecture === 'amd64'
  const uuid = [
    ...['-fw_cfg', `name=opt/svc3/instance,string=${instanceOf(uid)}`],
    ...(uuidForm.test(uid) ? ['-uuid', uid, ...(hasGeneration ? device(`vmgenid,guid=${uid}`) : [])] : []),
  ]
  if (systemSerial === undefined) return uuid
  if (!serialForm.test(systemSerial))
    throw new Error(`the system serial number has to be 1 to 64 letters, digits, '.', '_', '+', '/', '-'`)
  return [...uuid, ...(macos ? macosSerial(systemSerial) : ['-smbios', `type=1,serial=${systemSerial}`])]
}

function disk({ legacyIO, architecture, image }: VmSpec, { diskNode }: LaunchSettings): readonly string[] {
  const isOld = legacyIO && architecture === 'amd64'
  return [
    ...(image.socket === undefined ? [] : node(remoteNode(image.socket))),
    ...node({ 'node-name': 'disk', ...diskNode }),
    ...device(isOld ? 'ide-hd,bus=ide.0,drive=disk,bootindex=1' : 'virtio-blk-pci,drive=disk,bootindex=1'),
  ]
}

/** After the disk in the boot order: an empty disk boots the ISO, an installed one boots itself. */
function iso({ iso, architecture }: VmSpec, { isoIsDisk }: LaunchSettings): readonly string[] {
  if (iso === undefined) return []
  return [
    ...node({ 'node-name': 'iso', ...baseNode({ disk: iso, format: 'raw' }) }),
    ...(isoIsDisk
      ? [...device('qemu-xhci,id=installer'), ...device('usb-storage,bus=installer.0,drive=iso,bootindex=2')]
      : architecture === 'amd64'
        ? device('ide-cd,bus=ide.1,drive=iso,bootindex=2')
        : [...device('virtio-scsi-pci'), ...device('scsi-cd,drive=iso,bootindex=2')]),
  ]
}

/** The guest's network, and a second one that leads only to its metadata. */
function network(vm: VmSpec, { network: kind, macos }: LaunchSettings): readonly string[] {
  const usual = vm.netBoost ? 'virtio-net-pci' : qemuArchitectures[vm.architecture].slowNetworkDevice
  const model = macos ? macosNetworkDevice(vm) : usual
  const metadata = [
    'user,id=metadata,ipv6=off,restrict=on',
    'net=169.254.169.0/24,host=169.254.169.2,dns=169.254.169.3,dhcpstart=169.254.169.15',
    `guestfwd=tcp:169.254.169.254:80-cmd:${metadataCommand}`,
  ]
  return [
    ...['-netdev', networkArgument(kind, vm)],
    // Without a boot ROM: looking for a network boot takes time.
    ...device(`${model},netdev=net,mac=${macAddress(vm.uid, 0)},romfile=`),
    ...['-netdev', metadata.join(',')],
    ...device(`${model},netdev=metadata,mac=${macAddress(vm.uid, 1)},romfile=`),
  ]
}

/**
 * Last, so that all other devices keep their positions. It has two ports because the first of such a device is for a
 * console.
 */
const guestAgent = ({ runtime }: LaunchSettings): readonly string[] => [
  ...['-chardev', `socket,id=${agentDevice},path=${agentSocket(runtime)},server=on,wait=off`],
  ...device('virtio-serial-pci,max_ports=2'),
  ...device(`virtserialport,chardev=${agentDevice},name=org.qemu.guest_agent.0`),
]

function screen({ screen, ip, architecture }: VmSpec, { network: kind, macos }: LaunchSettings): readonly string[] {
  if (!screen) return ['-display', 'none', ...(macos ? macosScreen(screen).flatMap(device) : [])]
  if (screen.port < firstScreenPort)
    throw new Error(`a screen cannot be on port ${screen.port}: QEMU's are ${firstScreenPort} and above`)
  const { screenDevice, inputDevices } = qemuArchitectures[architecture]
  const devices = macos ? macosScreen(screen) : [screenDevice(screen.width, screen.height), ...inputDevices]
  return [...['-vnc', `${listenAddress(kind, ip)}:${screen.port - firstScreenPort}`], ...devices.flatMap(device)]
}
