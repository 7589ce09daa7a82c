// A process that takes an agent's folder on command, reports the result, and releases the folder on command.
import { holdFolder } from '../../../src/agent/host/hold-folder.ts'

let release: (() => Promise<void>) | undefined

const orders: Readonly<Record<string, (folder: string) => Promise<string>>> = {
  async take(folder) {
    try {
      release = await holdFolder(folder)
      return 'held'
    } catch (error) {
      return error instanceof Error ? error.name : 'unknown'
    }
  },
  async release() {
    await release?.()
    release = undefined
    return 'released'
  },
}

process.on('message', async ({ order, folder }: { order: string; folder: string }) =>
  process.send?.(await orders[order]?.(folder)),
)
process.send?.('ready')
