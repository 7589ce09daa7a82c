// Finds the address of a guest by asking tart when a client connects, and confirms by ARP that the guest is this VM's. The
// answer is shared by concurrent callers and cached for some seconds only, because a guest's former address may soon
// belong to another. A restarted agent reads the address of the screen from the record of the run.
import dgram from 'node:dgram'
import { setTimeout as sleep } from 'node:timers/promises'
import { type GuestReach, isUnreachable } from '../../api/vms/guest-reach.ts'
import { unreachable } from '../reach.ts'
import type { ReadArp } from './arp.ts'
import type { ForwardedGuest } from './forwarder.ts'
import { readTartConfig } from './machine.ts'
import { printedVnc, readRun } from './run.ts'
import { type Tart, vmAddress } from './tart.ts'

/** Each query starts a process, so a guest without an address is not queried more often. */
const pauseMs = 500
const rememberedMs = 10_000
const arpMs = 1_000
const discardPort = 9

interface AddressSources {
  readonly tart: Tart
  readonly folder: string
  readonly readArp: ReadArp
  /** Called when a connection failed for another reason than the one before. */
  readonly unreached?: () => void
}

export class AddressBook implements ForwardedGuest {
  readonly #sources: AddressSources
  #name = ''
  #known: { readonly address: string; readonly untilMs: number; isConfirmed?: boolean } | undefined
  #asking: Promise<string | undefined> | undefined
  #reach: GuestReach | undefined

  constructor(sources: AddressSources) {
    this.#sources = sources
  }

  use(name: string): void {
    this.#known = undefined
    this.#reach = undefined
    this.#name = name
  }

  /** How the last attempt to reach the guest ended. Undefined before the first attempt of a run. */
  get reach(): GuestReach | undefined {
    return this.#reach
  }

  async address(): Promise<string | undefined> {
    if (this.#known && performance.now() < this.#known.untilMs) return this.#known.address
    this.#asking ??= this.#ask()
    return this.#asking
  }

  failed(address: string, error: NodeJS.ErrnoException): void {
    // A refusal comes from a guest, so the address may be right.
    if (error.code !== 'ECONNREFUSED') this.#known = undefined
    this.#note(unreachable(error, address))
  }

  /**
   * Throws unless the ARP table gives the address to this VM alone. Called after a connection was made and before anything
   * is forwarded: the handshake has then put the guest into the table. An address without an entry is refused, too. It is
   * not on a network of this host, so nothing proves whose it is.
   */
  async confirm(address: string): Promise<void> {
    const { folder, readArp } = this.#sources
    const { macAddress = '' } = await readTartConfig(folder, { name: this.#name })
    const owners = await readArp(address)
    if (owners.length > 0 && owners.every((owner) => owner === macAddress.toLowerCase())) {
      this.#reach = { ok: true }
      return
    }
    this.#known = undefined
    const unknown = `${address} is not in the ARP table of this Mac, so its owner is unknown`
    const other =
      `${address} belongs to ${owners.join(' and ')}, and this VM is ${macAddress}: the Mac gave its address to another ` +
      'guest. Restart the VM; docs/operate/hosts-macos.md says how to shorten leases'
    this.#note(owners.length === 0 ? { reason: 'NoRoute', message: unknown } : { reason: 'OtherGuest', message: other })
    throw new Error(`the guest at ${address} is not confirmed`)
  }

  /** The address for datagrams, which have no handshake: an empty one puts the guest into the ARP table. */
  async confirmedAddress(): Promise<string | undefined> {
    const address = await this.address()
    const known = this.#known
    if (address === undefined || (known?.isConfirmed && known.address === address)) return address
    const socket = dgram.createSocket('udp4').on('error', () => undefined)
    socket.send('', discardPort, address, () => socket.close())
    const untilMs = performance.now() + arpMs
    while ((await this.#sources.readArp(address)).length === 0 && performance.now() < untilMs) await sleep(100)
    await this.confirm(address)
    if (known?.address === address) known.isConfirmed = true
    return address
  }

  async screen(): Promise<string | undefined> {
    const { folder } = this.#sources
    return (await readRun(folder))?.vnc ?? (await printedVnc(folder))
  }

  #note(reach: GuestReach): void {
    const before = this.#reach
    this.#reach = reach
    if (isUnreachable(reach) && !(isUnreachable(before) && before.reason === reach.reason)) this.#sources.unreached?.()
  }

  async #ask(): Promise<string | undefined> {
    const name = this.#name
    const { tart, folder } = this.#sources
    const found = await vmAddress(tart, folder, name)
    if (found !== undefined && name === this.#name)
      this.#known = { address: found, untilMs: performance.now() + rememberedMs }
    const message = 'the guest has no address yet: it is booting, has no network, or got no DHCP lease'
    if (found === undefined) this.#note({ reason: 'NoAddress', message })
    const ended = () => {
      this.#asking = undefined
    }
    setTimeout(ended, found === undefined ? pauseMs : 0).unref()
    return found
  }
}
