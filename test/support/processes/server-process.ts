// A server process for tests that kill it: node server-process.ts JSON, with `ServerProcessOptions`. It prints a line of
// JSON when it listens.
import { createInterface } from 'node:readline'
import { startControlPlane } from '../../../src/control-plane/control-plane.ts'

const { dataFolder, storeAddress, masterKey, internalUrl, ...given } = JSON.parse(process.argv[2] ?? '{}')
const { host = '127.0.0.1', port = 0, plainHttp = true, kubernetes } = given
const plane = await startControlPlane({
  dataFolder,
  storeAddress,
  host,
  port,
  environment: { SVC3_MASTER_KEY: masterKey },
  plainHttp,
  internalUrl,
  kubernetes,
})
// Some runs take longer than a user's token lives.
const { token } = await plane.tokens.issue({ kind: 'user', name: 'admin@example.com', admin: true }, 86_400)
const { token: joinToken } = await plane.nodeKeys.issueJoinToken('svc-default', 3_600)
const { localUrl: apiUrl, kubernetesUrl } = plane
process.stdout.write(`${JSON.stringify({ apiUrl, kubernetesUrl, token, joinToken })}\n`)
process.once('SIGTERM', () => void plane.stop().then(() => process.exit(0)))
// When its starter dies, the pipe ends. With --expose-gc, each line collects garbage and prints what is left.
createInterface(process.stdin)
  .on('line', () => {
    globalThis.gc?.()
    process.stdout.write(`${process.memoryUsage().heapUsed}\n`)
  })
  .once('close', () => process.exit(0))
