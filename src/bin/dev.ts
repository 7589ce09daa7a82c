// `svc3 dev`: the whole service in one process, for a laptop or a single host. Says when it serves and how to go on,
// and leaves a connection file that the command line finds by itself.
import path from 'node:path'
import { userTokenSeconds } from '../auth/tokens.ts'
import type { DevOptions } from '../cli/programs.ts'
import { writeFileAtomically } from '../platform/files.ts'
import { startLoop } from '../platform/loop.ts'
import { isFault } from '../store/store.ts'
import { removeConnection, writeConnection } from './connection.ts'
import { type ControlPlane, startControlPlane } from './control-plane.ts'
import { nextSteps } from './next-steps.ts'
import { startFailure } from './start-failure.ts'

export const rotateSignal = 'SIGUSR2'
export const rotationFile = 'rotation.json'

export async function runDev(options: DevOptions): Promise<number> {
  const { dataDir, listen } = options
  const stop = stopRequested()
  let plane: ControlPlane
  try {
    plane = await startPatiently({
      dataFolder: dataDir,
      host: listen.host,
      port: listen.port,
      environment: process.env,
    })
  } catch (error) {
    for (const line of await startFailure(error, options)) process.stderr.write(`svc3: ${line}\n`)
    return 1
  }
  const connect = async (): Promise<void> => {
    const { token } = await plane.tokens.issue({ kind: 'user', name: 'admin', admin: true })
    await writeConnection(dataDir, { apiUrl: plane.apiUrl, adminToken: token, pid: process.pid })
  }
  await connect()
  const renewal = startLoop({
    everyMs: (userTokenSeconds * 1_000) / 2,
    run: connect,
    failed: (error) => plane.log.error('the connection file could not be renewed', {}, error),
  })
  process.on(rotateSignal, () => void rotate(plane, dataDir))
  process.stdout.write(`svc3 ready at ${plane.apiUrl}\n${nextSteps(dataDir)}`)

  const signal = await stop
  plane.log.info('stopping', { signal })
  await renewal.stop()
  await plane.stop()
  await removeConnection(dataDir)
  process.stdout.write('svc3 stopped\n')
  return 0
}

/** A start right after a kill may find the old process in its last moments: it gets two seconds to end. */
async function startPatiently(options: Parameters<typeof startControlPlane>[0]): Promise<ControlPlane> {
  const patienceEnds = performance.now() + 2_000
  for (;;) {
    try {
      return await startControlPlane(options)
    } catch (error) {
      if (!isFault(error, 'Locked') || performance.now() > patienceEnds) throw error
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }
}

/** Tells `svc3 server rotate-key`, which waits for this file, what became of it. */
async function rotate(plane: ControlPlane, dataDir: string): Promise<void> {
  try {
    const rotation = await plane.rotateKey()
    await writeFileAtomically(path.join(dataDir, rotationFile), JSON.stringify(rotation), { mode: 0o600 })
    plane.log.info('master key rotated', { keyId: rotation.keyId, count: rotation.resealed })
  } catch (error) {
    plane.log.error('the master key could not be rotated', {}, error)
  }
}

function stopRequested(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => resolve(signal))
  })
}
