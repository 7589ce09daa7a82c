// The resource usage of the host, including all other programs.
import fs from 'node:fs/promises'
import os from 'node:os'

export async function hostUsage(folder: string) {
  const cores = os.cpus()
  const busyMs = cores.reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0)
  const { blocks, bfree, bsize } = await fs.statfs(folder)
  return {
    busySeconds: busyMs / 1_000,
    cores: Math.max(1, cores.length),
    memoryBytes: os.totalmem() - os.freemem(),
    diskBytes: (blocks - bfree) * bsize,
  }
}
