// `svc3 dev`: the whole service in one process, for a laptop or a single host. Says when it serves and how to go on,
// and leaves a connection file that the command line finds by itself.
import type { DevOptions } from '../cli/programs.ts'
import { startLoop } from '../platform/loop.ts'
import { isFault } from '../store/store.ts'
import { readConnection, removeConnection, writeConnection } from './connection.ts'
import { type ControlPlane, startControlPlane } from './control-plane.ts'
import { nextSteps } from './next-steps.ts'
import { readRotation, rotateSignal, writeRotation } from './rotation-note.ts'
import { startFailure } from './start-failure.ts'

/** A token printed by "user get-token" is valid for an hour: the one in the connection file is never much older. */
const renewEveryMs = 60_000

export async function runDev(options: DevOptions): Promise<number> {
  const { dataDir, listen } = options
  outliveReaders()
  const stop = stopRequested()
  let plane: ControlPlane
  try {
    const start = { dataFolder: dataDir, host: listen.host, port: listen.port, environment: process.env }
    const started = await Promise.race([startPatiently(start), stop])
    if (typeof started === 'string') return 0
    plane = started
  } catch (error) {
    for (const line of await startFailure(error, options)) process.stderr.write(`svc3: ${line}\n`)
    return 1
  }
  process.on(rotateSignal, () => void rotate(plane, dataDir))
  const renewal = startLoop({
    everyMs: renewEveryMs,
    run: () => connect(plane, dataDir),
    failed: (error) => plane.log.error('the connection file could not be renewed', {}, error),
  })
  await connect(plane, dataDir)
  process.stdout.write(`svc3 ready at ${plane.apiUrl}\n${nextSteps(dataDir)}`)

  const reason = await Promise.race([stop, plane.failed])
  await renewal.stop()
  // First, so that who waits for this process to end knows that it is ending.
  await removeConnection(dataDir)
  if (typeof reason === 'string') plane.log.info('stopping', { signal: reason })
  else plane.log.error('stopping, because the store cannot go on', {}, reason)
  await plane.stop()
  process.stdout.write('svc3 stopped\n')
  return typeof reason === 'string' ? 0 : 1
}

async function connect(plane: ControlPlane, dataDir: string): Promise<void> {
  const { token } = await plane.tokens.issue({ kind: 'user', name: 'admin', admin: true })
  await writeConnection(dataDir, { apiUrl: plane.apiUrl, adminToken: token, pid: process.pid })
}

/** Who reads our output may go away (a closed pipe, a dead log shipper): the service goes on without. */
function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)
}

/**
 * A start right after a stop or a kill may find the old process in its last moments. While its connection file is there
 * it may be serving, and gets two seconds; without the file it is surely starting or stopping, and gets twelve.
 */
async function startPatiently(options: Parameters<typeof startControlPlane>[0]): Promise<ControlPlane> {
  const startMs = performance.now()
  for (;;) {
    try {
      return await startControlPlane(options)
    } catch (error) {
      const patienceMs = (await readConnection(options.dataFolder)) ? 2_000 : 12_000
      if (!isFault(error, 'Locked') || performance.now() - startMs > patienceMs) throw error
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }
}

/** Carries out what `svc3 server rotate-key` asked for, and tells it what became of it. */
async function rotate(plane: ControlPlane, dataDir: string): Promise<void> {
  const request = await readRotation(dataDir)
  if (!request) return plane.log.warn('asked to rotate the master key, but no request is there')
  try {
    const rotation = await plane.rotateKey()
    await writeRotation(dataDir, { id: request.id, rotation })
    plane.log.info('master key rotated', { keyId: rotation.keyId, count: rotation.resealed })
  } catch (error) {
    plane.log.error('the master key could not be rotated', {}, error)
    await writeRotation(dataDir, { id: request.id, problem: error instanceof Error ? error.message : 'unknown' })
  }
}

function stopRequested(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => resolve(signal))
    // A terminal that closes ends the service; without one (nohup) it is nothing to us.
    process.on('SIGHUP', () => process.stdin.isTTY && resolve('SIGHUP'))
  })
}
