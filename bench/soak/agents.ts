// The nodes of a soak as a process of their own, so that what a server takes is the server's: node agents.ts JSON, with
// `Given`. Once all are connected it prints one line.
import path from 'node:path'
import { createInterface } from 'node:readline'
import { startAgent } from '../../src/agent/agent.ts'
import { SimulatedDriver } from '../../src/drivers/simulated.ts'
import { silentLog } from '../../src/platform/log.ts'

export interface Given {
  readonly apiUrls: readonly string[]
  readonly joinToken: string
  readonly folder: string
  readonly count: number
}

const atOnce = 20

const { apiUrls, joinToken, folder, count } = JSON.parse(process.argv[2] ?? '{}') as Given
const numbers = Array.from({ length: count }, (_, index) => index)
while (numbers.length > 0) await Promise.all(numbers.splice(0, atOnce).map(startNode))
process.stdout.write('ready\n')
// The parent has ended when its end of the pipe is closed.
createInterface(process.stdin).once('close', () => process.exit(0))

async function startNode(number: number): Promise<void> {
  const name = `node-${number}`
  const agent = await startAgent({
    apiUrls: number % 2 === 0 ? apiUrls : apiUrls.toReversed(),
    folder: path.join(folder, name),
    imageFolder: path.join(folder, 'images', name),
    name,
    version: '3.0.0-soak',
    driver: new SimulatedDriver({ architectures: ['amd64'] }),
    // Ports are given out by address.
    capacity: { architecture: 'amd64', ip: `127.1.${number >> 8}.${number & 255}`, cpu: 12, memoryMiB: 65_536 },
    joinToken: async () => joinToken,
    log: silentLog,
  })
  await agent.ready
}
