// The common part of `svc3 dev` and `svc3 server`: starts the service, writes the connection file, carries out operator
// requests, and stops on a signal.
import { startLoop } from '../platform/loop.ts'
import { notifySupervisor } from '../platform/notify.ts'
import { lookAfterLog } from '../platform/own-log.ts'
import { isFault } from '../store/store.ts'
import { type ConnectionFile, readConnection, removeConnection, writeConnection } from './connection.ts'
import { type ControlPlane, type ControlPlaneOptions, startControlPlane } from './control-plane.ts'
import { readRequest, requestSignal, writeRequest } from './operator-request.ts'
import { startFailure } from './start-failure.ts'

/** Tokens are valid for an hour, so the one in the connection file stays fresh. */
const renewEveryMs = 60_000
interface ServeOptions
  extends Pick<
    ControlPlaneOptions,
    'plainHttp' | 'publicUrl' | 'isDev' | 'storeAddress' | 'noticeSeconds' | 'internalUrl' | 'images' | 'kubernetes'
  > {
  readonly dataDir: string
  readonly listen: { readonly host: string; readonly port: number }
  /** Further fields of the connection file, renewed every minute. */
  note(plane: ControlPlane): Promise<Pick<ConnectionFile, 'adminToken'>>
  /** Runs next to the service in this process, and stops before it. `left` describes what keeps running. */
  sidecar?(plane: ControlPlane): Promise<{ stop(): Promise<void>; left(): string }>
  /** Returns text to print after the line that the service is ready. */
  greet(plane: ControlPlane): Promise<string>
}

/** Returns the exit code when the service has stopped or could not start. */
export async function serve(options: ServeOptions): Promise<number> {
  const { dataDir, listen, note, greet, sidecar, ...rest } = options
  outliveReaders()
  const { stop, expedite } = stopRequested()
  let plane: ControlPlane
  try {
    const place = { dataFolder: dataDir, host: listen.host, port: listen.port, environment: process.env }
    const started = await Promise.race([startWhenUnlocked({ ...place, ...rest }), stop])
    if (typeof started === 'string') return 0
    plane = started
  } catch (error) {
    for (const line of await startFailure(error, options)) process.stderr.write(`svc3: ${line}\n`)
    return 1
  }
  const connect = async (): Promise<void> =>
    writeConnection(dataDir, { apiUrl: plane.localUrl, ...(await note(plane)), pid: process.pid })
  process.on(requestSignal, () =>
    answer(plane, dataDir, connect).catch((error: unknown) =>
      plane.log.error('an operator command could not be read or answered', { folder: dataDir }, error),
    ),
  )
  await connect()
  const renewal = startLoop({
    everyMs: renewEveryMs,
    isFirstLater: true,
    run: connect,
    failed: (error) => plane.log.error('The connection file could not be renewed', {}, error),
  })
  const nodes = sidecar?.(plane)
  const isUp = await Promise.race([nodes?.then(() => true) ?? true, stop]).catch((error: Error) => error)
  if (isUp === true) process.stdout.write(`svc3 ready at ${plane.apiUrl}\n${await greet(plane)}`)
  const stopLog = lookAfterLog(process.env.SVC3_LOG_FILE)
  if (isUp === true) await notifySupervisor('ready', plane.apiUrl)

  if (isUp instanceof Error) process.stderr.write(`svc3: ${isUp.message}\nsvc3: ${hintOf(isUp)}\n`)
  const reason = isUp instanceof Error ? isUp : await Promise.race([stop, plane.failed])
  await notifySupervisor('stopping', 'Data is kept')
  await renewal.stop()
  // The connection file is removed first, so that other commands see that this process is ending.
  await removeConnection(dataDir)
  if (typeof reason === 'string') plane.log.info('stopping', { signal: reason })
  else plane.log.error('stopping after a fatal error', {}, reason)
  const running = await nodes?.catch(() => undefined)
  const left = running?.left() ?? ''
  await running?.stop()
  await plane.stop(expedite)
  await stopLog()
  process.stdout.write(`svc3 stopped\n${left}`)
  return typeof reason === 'string' ? 0 : 1
}

const hintOf = (error: Error): string =>
  (error as { options?: { hint?: string } }).options?.hint ?? 'See the log above; no data was lost'

/** The service continues if its output can no longer be written, for example to a closed pipe. */
function outliveReaders(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)
}

/**
 * Right after a stop or a kill, the old process may still be ending. With a connection file it may be serving, and gets
 * two seconds to end; without one it is starting or stopping, and gets twelve.
 */
async function startWhenUnlocked(options: ControlPlaneOptions): Promise<ControlPlane> {
  let refusedMs: number | undefined
  for (;;) {
    try {
      return await startControlPlane(options)
    } catch (error) {
      if (!isFault(error, 'Locked')) throw error
      // The timeout begins at the first refusal, because a busy machine may take long to reach it.
      refusedMs ??= performance.now()
      const timeoutMs = (await readConnection(options.dataFolder)) ? 2_000 : 12_000
      if (performance.now() - refusedMs > timeoutMs) throw error
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }
}

async function answer(plane: ControlPlane, dataDir: string, connect: () => Promise<void>): Promise<void> {
  const { id, wish } = (await readRequest(dataDir)) ?? {}
  if (id === undefined || !wish) return plane.log.warn('signal from an operator command without a request')
  try {
    const answer = await plane.handleRequest(wish)
    // A new password invalidates the token in the connection file.
    if (wish.name === 'users') await connect()
    await writeRequest(dataDir, { id, answer })
    plane.log.info('operator command completed', { operation: wish.name })
  } catch (error) {
    plane.log.error('operator command failed', { operation: wish.name }, error)
    await writeRequest(dataDir, { id, problem: error instanceof Error ? error.message : 'unknown' })
  }
}

/** The first signal stops gracefully. A second one skips the wait for load balancers. */
function stopRequested(): { readonly stop: Promise<string>; readonly expedite: AbortSignal } {
  const { promise, resolve } = Promise.withResolvers<string>()
  const expedite = new AbortController()
  let isStopping = false
  const request = (signal: string): void => {
    if (isStopping) expedite.abort()
    isStopping = true
    resolve(signal)
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => request(signal))
  // A closed terminal ends the service, unless it runs without one (nohup).
  process.on('SIGHUP', () => process.stdin.isTTY && request('SIGHUP'))
  return { stop: promise, expedite: expedite.signal }
}
