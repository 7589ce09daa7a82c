// Every driver by name.
import type { Architecture } from '../api/architecture.ts'
import { AppleDriver, type AppleOptions } from './apple/driver.ts'
import type { Driver } from './driver.ts'
import { QemuDriver } from './qemu/driver.ts'
import type { MacosSettings } from './qemu/macos.ts'
import type { NetworkKind } from './qemu/network/network.ts'
import { SimulatedDriver, type SimulatedKnobs } from './simulated.ts'

/** Settings of a node; each driver takes those that concern it. */
interface DriverSettings {
  /** The agent's folder. */
  readonly dataDir?: string
  /** The only architecture that the node offers. */
  readonly architecture?: Architecture | undefined
  readonly network?: NetworkKind | undefined
  readonly macos?: MacosSettings | undefined
  /** Throws if the settings contradict each other. */
  readonly apple?: () => Omit<AppleOptions, 'dataDir'>
  readonly simulation?: SimulatedKnobs
}

const drivers = {
  qemu: ({ network, macos, ...settings }) => new QemuDriver({ network, macos, ...offered(settings) }),
  apple: ({ dataDir, apple }) => new AppleDriver({ dataDir, ...apple?.() }),
  simulated: ({ simulation, ...settings }) => new SimulatedDriver({ ...simulation, ...offered(settings) }),
} satisfies Readonly<Record<string, (settings: DriverSettings) => Driver>>
export type DriverName = keyof typeof drivers
export const driverNames = Object.keys(drivers) as readonly DriverName[]

const offered = ({ architecture }: DriverSettings) =>
  architecture === undefined ? {} : { architectures: [architecture] }

export const openDriver = (name: DriverName, settings: DriverSettings = {}): Driver => drivers[name](settings)
