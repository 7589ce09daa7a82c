// `svc3 migrate scan` on a log of 1 GB: at least 100 MB per second of its processor time, in memory that does not grow
// with it.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import { describe, it } from 'node:test'
import { makeFolder, program } from '../support/processes/dev-server.ts'
import { legacyLog } from '../support/tools/legacy-log.ts'

interface Run {
  readonly stdout: string
  readonly peakMb: number
  /** Of the processor: others work on this machine, too. */
  readonly cpuSeconds: number
  readonly wallSeconds: number
}

/** Clock ticks in /proc are hundredths of a second. */
const ticks = 100

function scan(file: string): Promise<Run> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, ['migrate', 'scan', file, '-o', 'json'], { stdio: ['ignore', 'pipe', 'inherit'] })
    const startMs = performance.now()
    let stdout = ''
    let last = { peakMb: 0, cpuSeconds: 0 }
    const look = setInterval(() => {
      try {
        const peak = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]
        const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
        // A process that has just ended has no memory left to read.
        if (peak === undefined) return
        last = { peakMb: Number(peak) / 1_024, cpuSeconds: (Number(fields[11]) + Number(fields[12])) / ticks }
      } catch {
        // It has just ended.
      }
    }, 20)
    child.stdout.on('data', (chunk) => {
      stdout += chunk
    })
    child.on('error', reject)
    child.on('close', () => {
      clearInterval(look)
      resolve({ stdout, ...last, wallSeconds: (performance.now() - startMs) / 1_000 })
    })
  })
}

describe('a log of 1 GB', { timeout: 170_000 }, () => {
  it('a log of 1 GB is read at 100 MB/s or more, in the memory that a small one takes', async (test) => {
    const folder = await makeFolder()
    const file = path.join(folder, 'access.log')
    try {
      const { block, calls, lines } = legacyLog(2 ** 24)
      await fs.writeFile(file, block)
      const small = await scan(file)
      const handle = await fs.open(file, 'w')
      const blocks = Math.ceil(1e9 / block.length)
      for (let written = 0; written < blocks; written++) await handle.write(block)
      await handle.close()
      const large = await scan(file)
      const rate = (blocks * block.length) / 1e6 / large.cpuSeconds
      test.diagnostic(
        `${Math.round(rate)} MB/s of processor time (${large.wallSeconds.toFixed(1)} s in all, ${blocks * lines} lines), ` +
          `peak ${Math.round(large.peakMb)} MB, for 16 MB ${Math.round(small.peakMb)} MB`,
      )
      const counts = Object.fromEntries(
        JSON.parse(large.stdout).map(({ call, count }: { call: string; count: number }) => [call, count]),
      )
      assert.deepEqual(counts, Object.fromEntries([...calls].map(([call, count]) => [call, count * blocks])))
      assert.ok(rate >= 100, `${rate} MB/s`)
      assert.ok(large.peakMb < small.peakMb + 100, `${large.peakMb} MB after ${small.peakMb} MB`)
    } finally {
      await fs.rm(folder, { recursive: true, force: true })
    }
  })
})
