// The agents of `svc3 dev`, in a thread of their own: what they do for their VMs holds up no answer of the server.
import { parentPort, workerData } from 'node:worker_threads'
import { type Agent, type AgentOptions, startAgent } from '../agent/agent.ts'
import { type DriverName, openDriver } from '../drivers/index.ts'
import { createLog, type Level } from '../platform/log.ts'
import type { Simulation } from './simulate.ts'

/** What the thread is started with. */
export interface NodesWork {
  readonly nodes: readonly Omit<AgentOptions, 'driver' | 'joinToken' | 'log' | 'recipes' | 'trust'>[]
  readonly driver: DriverName
  /** Each node has a driver of its own, with the same settings. */
  readonly settings: Pick<NonNullable<Parameters<typeof openDriver>[1]>, 'network' | 'macos'> & {
    readonly simulation?: Simulation
  }
  readonly logLevel: Level
}

/** What the thread says: every node is connected, or one needs a token to join with. */
export type FromNodes = 'ready' | 'token'
export type ToNodes = 'stop' | { readonly token: string } | { readonly problem: string }

if (!parentPort) throw new Error('dev-nodes-thread runs as a worker thread of dev-nodes.ts')
const port = parentPort
const say = (message: FromNodes): void => port.postMessage(message)
const { nodes, driver, settings, logLevel } = workerData as NodesWork
const log = createLog(logLevel)

/** Any token is as good as another: the first answer is for who asked first. */
const joining: PromiseWithResolvers<string>[] = []
function joinToken(): Promise<string> {
  const asked = Promise.withResolvers<string>()
  joining.push(asked)
  say('token')
  return asked.promise
}
port.on('message', (message: ToNodes) => {
  if (message === 'stop') void stop()
  else if ('token' in message) joining.shift()?.resolve(message.token)
  else joining.shift()?.reject(new Error(message.problem))
})

// Here they are part of the service: their routine messages are for debugging.
const start = (place: number): Promise<Agent> =>
  startAgent({
    ...(nodes[place] as NodesWork['nodes'][number]),
    driver: openDriver(driver, settings),
    joinToken,
    log: { ...log, info: log.debug },
  })

const agents = await Promise.all(nodes.map((_, place) => start(place)))
await Promise.all(agents.map(({ ready }) => ready))
const timers = new Set<NodeJS.Timeout>()
loseNodes(settings.simulation)
say('ready')

async function stop(): Promise<void> {
  for (const timer of timers) clearTimeout(timer)
  await Promise.all(agents.map((agent) => agent.stop()))
  process.exit()
}

/** Nodes that are lost now and then, each at a time of its own: they stop, and come back where that was asked for. */
function loseNodes({ loseAfterMs, backAfterMs }: Simulation = {}): void {
  if (loseAfterMs === undefined) return
  const later = (milliseconds: number, work: () => Promise<void>): void => {
    const timer = setTimeout(
      () => {
        timers.delete(timer)
        void work()
      },
      milliseconds * (0.5 + Math.random()),
    )
    timers.add(timer)
  }
  const lose = (place: number): void =>
    later(loseAfterMs, async () => {
      await agents[place]?.stop()
      if (backAfterMs === undefined) return
      later(backAfterMs, async () => {
        agents[place] = await start(place)
        lose(place)
      })
    })
  for (const place of agents.keys()) lose(place)
}
