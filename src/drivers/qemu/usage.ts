// What a QEMU process has used: CPU and memory from /proc, disks from QMP, network from the counters of its namespace.
import fs from 'node:fs/promises'
import type { VmUsage } from '../driver.ts'
import type { Qmp } from './control/qmp.ts'
import type { NetworkKind } from './network/network.ts'

/** USER_HZ of Linux. */
const ticksPerSecond = 100

export async function usageOf(pid: number, network: NetworkKind, qmp: Qmp): Promise<VmUsage | undefined> {
  const disks = diskUsage(await qmp.execute('query-blockstats'))
  if (process.platform !== 'linux') return disks
  const read = (file: string): Promise<string> => fs.readFile(`/proc/${pid}/${file}`, 'utf8')
  try {
    const [stat, status, net] = await Promise.all([
      read('stat'),
      read('status'),
      // Without a separate namespace these would be the counters of the host.
      network === 'sealed' ? read('net/dev') : '',
    ])
    return { ...processUsage(stat, status), ...disks, ...networkUsage(net) }
  } catch {
    return undefined
  }
}

export function processUsage(stat: string, status: string): VmUsage {
  // The process name, which may contain anything, ends at the last parenthesis. After it, utime is the 12th field.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  // In KiB; `statm` would count pages, whose size depends on the kernel.
  const resident = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]
  return {
    cpuSeconds: (Number(fields[11]) + Number(fields[12])) / ticksPerSecond,
    memoryBytes: Number(resident) * 1_024,
  }
}

interface BlockStats {
  readonly device?: string
  readonly qdev?: string
  readonly stats?: { readonly rd_bytes?: number; readonly wr_bytes?: number }
}

/** Counts reads and writes of devices, not of the layers below them. */
export function diskUsage(answer: unknown): VmUsage {
  const devices = Array.isArray(answer) ? (answer as readonly BlockStats[]) : []
  const sum = (field: 'rd_bytes' | 'wr_bytes'): number =>
    devices.reduce((total, { qdev, stats }) => total + (qdev === undefined ? 0 : (stats?.[field] ?? 0)), 0)
  return { diskReadBytes: sum('rd_bytes'), diskWrittenBytes: sum('wr_bytes') }
}

/** Reads the counters of `tap0`, the device of the uplink. */
export function networkUsage(text: string): VmUsage {
  const line = text.split('\n').find((each) => each.trimStart().startsWith('tap0:'))
  if (line === undefined) return {}
  const fields = line
    .slice(line.indexOf(':') + 1)
    .trim()
    .split(/\s+/)
  return { networkInBytes: Number(fields[0]), networkOutBytes: Number(fields[8]) }
}
