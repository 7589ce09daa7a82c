// Installs the stand-in as `tart`, and creates what its VMs need besides a disk.
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { MachineFiles } from '../../../../src/drivers/driver.ts'
import { type BootBundle, bundleNvram } from './folder.ts'

/** A suite starts it a hundred times; compiling once saves two thirds. Kept, because its processes write to it late. */
const compiled = path.join(os.tmpdir(), `svc3-stand-in-${process.getuid?.() ?? 'user'}`)

const arp = path.join(compiled, 'arp')
/** As macOS prints it. It stands in for `arp -n ADDRESS`. */
const arpScript = `#!/bin/sh
[ -f '${arp}'/"$2" ] || { echo "$2 ($2) -- no entry"; exit 1; }
echo "? ($2) at $(cat '${arp}'/"$2") on bridge100 ifscope [bridge]"
`

/** What a driver in the process of a test gets, where `program` is not in PATH. */
export const standInOptions = (program: string) =>
  ({ program, arp: path.join(path.dirname(program), 'arp'), screen: 'open' }) as const

/** Returns the path of the program, in a folder for PATH, where `arp` of the stand-in is, too. */
export async function installStandIn(folder: string): Promise<string> {
  const program = path.join(folder, 'tart')
  const inside = (name: string) => path.join(import.meta.dirname, name)
  await fs.mkdir(folder, { recursive: true })
  const quick = await fs.readFile(inside('tart.sh'), 'utf8')
  const [first = '', ...rest] = quick.split('\n')
  await fs.mkdir(compiled, { recursive: true, mode: 0o700 })
  const settings = [
    `SVC3_STAND_IN='${process.execPath} --no-warnings ${inside('main.ts')}'`,
    `export NODE_COMPILE_CACHE='${compiled}'`,
    `export SVC3_STAND_IN_ARP='${arp}'`,
  ]
  await fs.mkdir(arp, { recursive: true, mode: 0o700 })
  await fs.writeFile(path.join(folder, 'arp'), arpScript, { mode: 0o755 })
  await fs.writeFile(program, [first, ...settings, ...rest].join('\n'), { mode: 0o755 })
  return program
}

/** As in an image of tart, which takes any guest for macOS. */
const machineConfig = (system: 'darwin' | 'linux' = 'darwin'): string =>
  JSON.stringify({
    version: 1,
    os: system,
    arch: 'arm64',
    cpuCountMin: 1,
    cpuCount: 1,
    memorySizeMin: 32 * 2 ** 20,
    memorySize: 64 * 2 ** 20,
    macAddress: '02:00:00:00:00:01',
    display: { width: 1_024, height: 768 },
    ...(system === 'darwin' && { ecid: 'c3RhbmQtaW4=', hardwareModel: 'c3RhbmQtaW4gbW9kZWw=' }),
  })

export async function writeMachine(
  folder: string,
  bundle: BootBundle,
  system: 'darwin' | 'linux' = 'darwin',
): Promise<Required<MachineFiles>> {
  const files = { config: path.join(folder, `machine-${system}.json`), nvram: path.join(folder, 'nvram.bin') }
  await fs.writeFile(files.config, machineConfig(system))
  await fs.writeFile(files.nvram, bundleNvram(bundle))
  return files
}

/** What the small arm64 image boots, as an NVRAM of the stand-in. */
export async function tinyBundle(tiny: string): Promise<BootBundle> {
  const { boot } = JSON.parse(await fs.readFile(path.join(tiny, 'image.json'), 'utf8'))
  const packed = async (file: string) => promisify(gzip)(await fs.readFile(path.join(tiny, file)), { level: 1 })
  return {
    kernel: await packed(boot.kernel),
    initrd: await packed(boot.initrd),
    commandLine: boot.commandLine,
  }
}
