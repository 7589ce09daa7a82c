// A server as a process of its own, for tests that kill it: node server-process.ts JSON, with what `ServerProcessOptions`
// says. Once it listens it prints one line of JSON.
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
// Some runs take longer than a token of a user lives.
const { token } = await plane.tokens.issue({ kind: 'user', name: 'admin@example.com', admin: true }, 86_400)
const { token: joinToken } = await plane.nodeKeys.issueJoinToken('svc-default', 3_600)
const { localUrl: apiUrl, kubernetesUrl } = plane
process.stdout.write(`${JSON.stringify({ apiUrl, kubernetesUrl, token, joinToken })}\n`)
process.once('SIGTERM', () => void plane.stop().then(() => process.exit(0)))
// Whoever started this is gone when its end of the pipe is. With --expose-gc a line collects, and what is left then is printed.
createInterface(process.stdin)
  .on('line', () => {
    globalThis.gc?.()
    process.stdout.write(`${process.memoryUsage().heapUsed}\n`)
  })
  .once('close', () => process.exit(0))
