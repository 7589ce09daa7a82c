// What differs between guest architectures: program, machine, processor, devices, packages. Tables only.
import type { Architecture } from '../../api/architecture.ts'
import { type Accelerator, hostArchitecture } from './accel.ts'

interface ArchitectureSettings {
  readonly program: string
  /** The package of the program, on Debian; macOS uses Homebrew's. */
  readonly debianPackage: string
  /** Depends on the cores because an arm64 interrupt controller of version 2 supports eight. */
  machine(cores: number): string
  readonly emulatedCpu: string
  readonly emulation: string
  screenDevice(width: number, height: number): string
  /** With `usb-kbd` where the machine has no keyboard. */
  readonly inputDevices: readonly string[]
  readonly slowNetworkDevice: string
}

export const qemuArchitectures: Readonly<Record<Architecture, ArchitectureSettings>> = {
  amd64: {
    program: 'qemu-system-x86_64',
    debianPackage: 'qemu-system-x86',
    machine: () => 'q35',
    // Without rdrand a guest's SSH server waits for entropy.
    emulatedCpu: 'qemu64,+rdrand',
    // x86 guarantees a stronger memory order than other hosts, where only one thread is correct.
    emulation: `tcg,thread=${hostArchitecture === 'amd64' ? 'multi' : 'single'}`,
    screenDevice: (width, height) => `VGA,edid=on,xres=${width},yres=${height}`,
    inputDevices: ['qemu-xhci', 'usb-tablet'],
    slowNetworkDevice: 'e1000',
  },
  arm64: {
    program: 'qemu-system-aarch64',
    debianPackage: 'qemu-system-arm',
    machine: (cores) => (cores > 8 ? 'virt,gic-version=3' : 'virt'),
    // `max` boots eight times slower under emulation.
    emulatedCpu: 'cortex-a57',
    emulation: 'tcg,thread=multi',
    screenDevice: (width, height) => `virtio-gpu-pci,edid=on,xres=${width},yres=${height}`,
    inputDevices: ['qemu-xhci', 'usb-kbd', 'usb-tablet'],
    slowNetworkDevice: 'virtio-net-pci',
  },
}

/** Firmware and kernels that use pages of 1 GiB crash QEMU under HVF. */
export const cpuFor = (guest: Architecture, accelerator: Accelerator): string => {
  if (accelerator === 'tcg') return qemuArchitectures[guest].emulatedCpu
  return accelerator === 'hvf' && guest === 'amd64' ? 'host,-pdpe1gb' : 'host'
}

export const accelArgument = (guest: Architecture, accelerator: Accelerator): string =>
  accelerator === 'tcg' ? qemuArchitectures[guest].emulation : accelerator
