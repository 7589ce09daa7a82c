// The agents of `svc3 dev`, in a separate thread, so that their work does not delay responses of the server.
import { setTimeout as sleep } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { type Agent, type AgentOptions, startAgent } from '../agent/agent.ts'
import { type DriverName, openDriver } from '../drivers/index.ts'
import { createLog, type Level } from '../platform/log.ts'
import { unlessAborted } from '../platform/retry.ts'
import type { Simulation } from './simulate.ts'

export interface NodesWork {
  readonly nodes: readonly Omit<AgentOptions, 'driver' | 'joinToken' | 'log' | 'recipes' | 'trust'>[]
  readonly driver: DriverName
  /** Each node has a separate driver with these settings. */
  readonly settings: Pick<NonNullable<Parameters<typeof openDriver>[1]>, 'network' | 'macos'> & {
    readonly simulation?: Simulation
  }
  readonly logLevel: Level
}

/** Says that all nodes are connected, or requests a join token for one of them. */
export type FromNodes = 'ready' | 'token'
export type ToNodes = 'stop' | { readonly token: string } | { readonly problem: string }

if (!parentPort) throw new Error('dev-nodes-thread runs as a worker thread of dev-nodes.ts')
const port = parentPort
const say = (message: FromNodes): void => port.postMessage(message)
const { nodes, driver, settings, logLevel } = workerData as NodesWork
const log = createLog(logLevel)
const stopping = new AbortController()

/** Requests for join tokens. Answers come in the same order, and any token fits any node. */
const joining: PromiseWithResolvers<string>[] = []
function joinToken(): Promise<string> {
  const request = Promise.withResolvers<string>()
  joining.push(request)
  say('token')
  return request.promise
}
port.on('message', (message: ToNodes) => {
  if (message === 'stop') void stop()
  else if ('token' in message) joining.shift()?.resolve(message.token)
  else joining.shift()?.reject(new Error(message.problem))
})

// Info messages of agents are debug messages here, because the agents are part of the service.
const start = (index: number): Promise<Agent> =>
  startAgent({
    ...(nodes[index] as NodesWork['nodes'][number]),
    driver: openDriver(driver, settings),
    joinToken,
    log: { ...log, info: log.debug },
  })

const agents = await Promise.all(nodes.map((_, index) => start(index)))
await Promise.all(agents.map(({ ready }) => ready))
loseNodes(settings.simulation)
say('ready')

async function stop(): Promise<void> {
  stopping.abort()
  await Promise.all(agents.map((agent) => agent.stop()))
  process.exit()
}

/** Stops nodes at random times, and starts them again if `backAfterMs` is set. */
function loseNodes({ loseAfterMs, backAfterMs }: Simulation = {}): void {
  if (loseAfterMs === undefined) return
  const pause = (milliseconds: number): Promise<void> =>
    sleep(milliseconds * (0.5 + Math.random()), undefined, { signal: stopping.signal })
  const lose = async (index: number): Promise<void> => {
    await pause(loseAfterMs)
    await agents[index]?.stop()
    if (backAfterMs === undefined) return
    await pause(backAfterMs)
    agents[index] = await start(index)
    return lose(index)
  }
  for (const index of agents.keys()) lose(index).catch(unlessAborted(stopping.signal))
}
