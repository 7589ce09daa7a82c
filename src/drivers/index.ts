// Every driver by name. A new one is a line here, and the contract suite runs on it.
import { AppleDriver, type AppleOptions } from './apple/driver.ts'
import type { Driver } from './driver.ts'
import { QemuDriver, type QemuOptions } from './qemu/driver.ts'
import { SimulatedDriver, type SimulatedKnobs } from './simulated.ts'

interface DriverOptions {
  readonly apple: AppleOptions
  readonly qemu: QemuOptions
  readonly simulated: SimulatedKnobs
}
export type DriverName = keyof DriverOptions

const drivers: { readonly [Name in DriverName]: (options: DriverOptions[Name]) => Driver } = {
  apple: (options) => new AppleDriver(options),
  qemu: (options) => new QemuDriver(options),
  simulated: (knobs) => new SimulatedDriver(knobs),
}

export const driverNames = Object.keys(drivers) as readonly DriverName[]

export const openDriver = <Name extends DriverName>(name: Name, options: DriverOptions[Name] = {}): Driver =>
  drivers[name](options)
