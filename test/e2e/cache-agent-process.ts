// An agent as a separate process that really fetches images, with VMs that are scripted, for tests that kill it:
// node cache-agent-process.ts URL TOKEN FOLDER QUOTA-BYTES
import path from 'node:path'
import { startAgent } from '../../src/agent/agent.ts'
import { createLog } from '../../src/platform/log.ts'
import { scriptedDriver, World } from '../support/stand-ins/scripted-driver.ts'

const [apiUrl = '', joinToken = '', folder = '', quota = ''] = process.argv.slice(2)
const agent = await startAgent({
  apiUrls: [apiUrl],
  folder,
  imageFolder: path.join(folder, 'images'),
  name: path.basename(folder),
  version: '3.0.0-test',
  driver: scriptedDriver(new World(), 'scripted'),
  recipes: {},
  capacity: { architecture: 'amd64', ip: '127.0.0.1' },
  imageQuotaBytes: Number(quota),
  peerPort: 0,
  // On a busy machine a peer may take its time; one that dies is noticed all the same.
  peerSilenceMs: 60_000,
  joinToken: async () => joinToken,
  log: createLog('error'),
})
await agent.failed
