// An agent process with the simulated driver, for tests that kill it: node agent-process.ts URL[,…] TOKEN FOLDER [CAPACITY
// as JSON]
import path from 'node:path'
import { startAgent } from '../../../src/agent/agent.ts'
import { SimulatedDriver } from '../../../src/drivers/simulated.ts'
import { createLog } from '../../../src/platform/log.ts'

const [apiUrls = '', joinToken = '', folder = '', capacity = '{}'] = process.argv.slice(2)
const agent = await startAgent({
  apiUrls: apiUrls.split(','),
  folder,
  imageFolder: path.join(folder, 'images'),
  name: path.basename(folder),
  version: '3.0.0-test',
  driver: new SimulatedDriver(),
  capacity: JSON.parse(capacity),
  joinToken: async () => joinToken,
  log: createLog('error'),
})
await agent.failed
