// An agent process with real disks, for tests that kill it: node capture-process.ts URL TOKEN FOLDER DISK BYTES
// [ARCHITECTURE [LOG]]
import fs from 'node:fs'
import path from 'node:path'
import { startAgent } from '../../../src/agent/agent.ts'
import { createLog } from '../../../src/platform/log.ts'
import { diskRecipe, layeredDriver } from '../stand-ins/layered-driver.ts'

const [apiUrl = '', joinToken = '', folder = '', disk = '', bytes = '', architecture, logFile] = process.argv.slice(2)
const agent = await startAgent({
  apiUrls: [apiUrl],
  folder,
  imageFolder: path.join(folder, 'images'),
  name: path.basename(folder),
  version: '3.0.0-test',
  driver: layeredDriver(),
  ...((architecture === 'amd64' || architecture === 'arm64') && {
    capacity: { architecture, cpu: 16, memoryMiB: 16_384 },
  }),
  recipes: { disk: diskRecipe(disk, Number(bytes)) },
  joinToken: async () => joinToken,
  log: logFile === undefined ? createLog('silent') : createLog('debug', (line) => fs.appendFileSync(logFile, line)),
})
await agent.failed
