// tart's files of a VM, for the stand-in: a folder below $TART_HOME with config.json, disk.img and nvram.bin; in addition,
// which process runs it, and an NVRAM that names what boots.
import { createHash } from 'node:crypto'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'

export class StandInError extends Error {
  readonly exitCode: number
  constructor(message: string, exitCode = 1) {
    super(message)
    this.exitCode = exitCode
  }
}

export interface VmConfig {
  readonly version: 1
  readonly os?: 'darwin' | 'linux'
  readonly arch: 'arm64'
  readonly cpuCountMin: number
  readonly cpuCount: number
  readonly memorySizeMin: number
  readonly memorySize: number
  readonly macAddress: string
  readonly display: { readonly width: number; readonly height: number; readonly unit?: 'pt' | 'px' | undefined }
  readonly ecid?: string
  readonly hardwareModel?: string
}

export const vmsFolder = (): string => path.join(process.env.TART_HOME ?? path.join(os.homedir(), '.tart'), 'vms')
export const vmFolder = (name: string): string => path.join(vmsFolder(), name)

export function readConfig(name: string): VmConfig {
  const file = path.join(vmFolder(name), 'config.json')
  if (!fs.existsSync(file)) throw new StandInError(`the specified VM "${name}" does not exist`, 2)
  const config = JSON.parse(fs.readFileSync(file, 'utf8')) as VmConfig
  const isMac = config.os !== 'linux'
  if (isMac && !(config.ecid && config.hardwareModel))
    throw new StandInError('config.json has no ecid or hardwareModel')
  if (!/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/.test(config.macAddress)) throw new StandInError('config.json has no macAddress')
  return config
}

export function writeConfig(name: string, config: VmConfig): void {
  fs.writeFileSync(path.join(vmFolder(name), 'config.json'), `${JSON.stringify(config, undefined, 2)}\n`)
}

/** A separate loopback address for each VM, on which its ports are reachable. */
export function addressOf(mac: string): string {
  const [a = 0, b = 0, c = 0] = createHash('sha256').update(mac).digest()
  return `127.${64 + (a % 64)}.${b}.${1 + (c % 254)}`
}

/** tart locks config.json; Node cannot, so the stand-in records the process. */
const lockOf = (name: string): string => path.join(vmFolder(name), 'stand-in.pid')

export function stateOf(name: string): { readonly state: 'running' | 'suspended' | 'stopped'; readonly pid: number } {
  readConfig(name)
  const pid = Number(fs.existsSync(lockOf(name)) ? fs.readFileSync(lockOf(name), 'utf8') : 0)
  if (pid > 0 && isRunBy(pid, name)) return { state: 'running', pid }
  const isSuspended = fs.existsSync(path.join(vmFolder(name), 'state.vzvmsave'))
  return { state: isSuspended ? 'suspended' : 'stopped', pid: 0 }
}

/** The ARP table of the host, which all stand-ins share: a file for each address, with the MAC address of its guest. */
const arpFolder = (): string => process.env.SVC3_STAND_IN_ARP ?? ''

/** macOS writes no leading zeros. */
export function enterArp({ macAddress }: VmConfig, owner = macAddress): string {
  const file = path.join(arpFolder(), addressOf(macAddress))
  fs.writeFileSync(file, `${owner.replaceAll(/\b0/g, '')}\n`)
  return file
}

export function lock(name: string, { macAddress }: VmConfig, resolver: string): void {
  for (const each of ['dhcp', 'arp', 'agent']) fs.rmSync(path.join(vmFolder(name), `stand-in.${each}`), { force: true })
  fs.writeFileSync(path.join(vmFolder(name), `stand-in.${resolver}`), `${addressOf(macAddress)}\n`)
  fs.writeFileSync(lockOf(name), `${process.pid}\n`)
}

function isRunBy(pid: number, name: string): boolean {
  try {
    const words = fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')
    return words.includes('run') && words.includes(name)
  } catch {
    return false
  }
}

export interface BootBundle {
  readonly kernel: Buffer
  readonly initrd?: Buffer
  readonly commandLine: string
}

const magic = 'tart-stand-in boots\n'

/** A kernel replaces a Mac's firmware here: without its NVRAM a VM does not boot. */
export function bundleNvram({ kernel, initrd = Buffer.alloc(0), commandLine }: BootBundle): Buffer {
  const head = JSON.stringify({ kernelBytes: kernel.length, initrdBytes: initrd.length, commandLine })
  return Buffer.concat([Buffer.from(`${magic}${head}\n`), kernel, initrd])
}

/** Undefined for a disk that boots by UEFI. */
export function readNvram(name: string): BootBundle | undefined {
  const bytes = fs.readFileSync(path.join(vmFolder(name), 'nvram.bin'))
  if (!bytes.subarray(0, magic.length).equals(Buffer.from(magic))) return undefined
  const end = bytes.indexOf('\n', magic.length)
  const { kernelBytes, initrdBytes, commandLine } = JSON.parse(bytes.toString('utf8', magic.length, end))
  const kernel = bytes.subarray(end + 1, end + 1 + kernelBytes)
  const initrd = bytes.subarray(end + 1 + kernelBytes, end + 1 + kernelBytes + initrdBytes)
  return { kernel, ...(initrdBytes > 0 && { initrd }), commandLine }
}
