// Real etcd for tests: members on loopback ports, in a temporary folder, ended by pid. They can be killed, paused,
// separated, replaced, and started again on their data.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { eventually } from '../tools/eventually.ts'
import { freePort } from '../tools/free-port.ts'
import { startPeerProxy } from './etcd-peer-proxy.ts'
import { endService } from './leftovers.ts'
import { pauseProcess } from './pause-process.ts'

export interface EtcdMember {
  readonly url: string
  readonly pid: number
  /** Kill -9, and wait for the end. */
  kill(): Promise<void>
  /** SIGTERM, and wait for the end. */
  stop(): Promise<void>
  pause(): void
  resume(): void
  /** On the same data and ports. */
  start(): Promise<void>
}

interface Start {
  readonly url: string
  readonly folder: string
  readonly args: readonly string[]
  readonly cluster: string
}

export interface EtcdCluster extends AsyncDisposable {
  readonly members: readonly EtcdMember[]
  readonly urls: readonly string[]
  /** With TLS, if requested. */
  readonly tlsUrls: readonly string[]
  /** A request to etcd's HTTP gateway, as an operator's tool would make. */
  post(path: string, body: object, member?: number): Promise<Record<string, unknown>>
  leader(): Promise<EtcdMember>
  /** From now on messages from one member do not reach the other. Requires `isCuttable`. */
  cut(from: number, to: number): Promise<void>
  mend(): void
  /** Removes a member for good and adds one without data in its place. */
  replace(n: number): Promise<void>
  end(): Promise<void>
}

export interface EtcdClusterOptions {
  readonly size?: number
  /** Members reach each other through proxies. */
  readonly isCuttable?: boolean
  /** On disk, as in production, for measurements. */
  readonly isDurable?: boolean
  readonly args?: readonly string[]
  /** Files. Every member also listens with TLS and requires a certificate of that authority. */
  readonly tls?: { readonly ca: string; readonly cert: string; readonly key: string }
}

/** Fast elections for a single member; etcd's defaults for several. */
const quick = ['--heartbeat-interval=10', '--election-timeout=100']
/** In memory if possible, because svc3 is tested, not etcd. */
const place = fs.existsSync('/dev/shm') ? '/dev/shm' : os.tmpdir()

export async function startEtcd({
  size = 1,
  isCuttable = false,
  isDurable = false,
  args = [],
  tls,
}: EtcdClusterOptions = {}): Promise<EtcdCluster> {
  const folder = fs.mkdtempSync(path.join(isDurable ? os.tmpdir() : place, 'svc3-etcd-'))
  const ports = await Promise.all(Array.from({ length: 3 * size }, freePort))
  const clientUrl = (n: number): string => `http://127.0.0.1:${ports[3 * n]}`
  const peerPorts = ports.filter((_, index) => index % 3 === 1)
  const peerProxies = isCuttable ? await Promise.all(peerPorts.map(startPeerProxy)) : []
  const peerUrl = (n: number): string => `http://127.0.0.1:${peerProxies[n]?.port ?? peerPorts[n]}`
  const tlsUrl = (n: number): string => `https://127.0.0.1:${ports[3 * n + 2]}`
  const tlsArgs = tls
    ? [`--trusted-ca-file=${tls.ca}`, `--cert-file=${tls.cert}`, `--key-file=${tls.key}`, '--client-cert-auth']
    : []
  const names = Array.from({ length: size }, (_, n) => `m${n}`)
  const cluster = (of: readonly string[]): string => of.map((name) => `${name}=${peerUrl(names.indexOf(name))}`).join()
  const members = names.map((name, n) =>
    member({
      url: clientUrl(n),
      folder: path.join(folder, name),
      cluster: cluster(names),
      args: [
        `--name=${name}`,
        `--listen-client-urls=${[clientUrl(n), ...(tls ? [tlsUrl(n)] : [])].join()}`,
        `--advertise-client-urls=${clientUrl(n)}`,
        `--listen-peer-urls=http://127.0.0.1:${peerPorts[n]}`,
        `--initial-advertise-peer-urls=${peerUrl(n)}`,
        '--log-level=error',
        ...(size === 1 ? quick : []),
        ...tlsArgs,
        ...args,
      ],
    }),
  )
  const end = async (): Promise<void> => {
    await Promise.all(members.map((one) => one.kill()))
    for (const proxy of peerProxies) await proxy[Symbol.asyncDispose]()
    fs.rmSync(folder, { recursive: true, force: true })
  }
  const post: EtcdCluster['post'] = async (where, body, n = 0) => {
    const signal = AbortSignal.timeout(3_000)
    const answer = await fetch(clientUrl(n) + where, { method: 'POST', body: JSON.stringify(body), signal })
    return (await answer.json()) as Record<string, unknown>
  }
  const leader = async (): Promise<EtcdMember> => {
    let found: EtcdMember | undefined
    await eventually(async () => {
      for (const [n, one] of members.entries()) {
        const status = await post('/v3/maintenance/status', {}, n).catch(() => undefined)
        const { member_id: id } = (status?.header ?? {}) as { member_id?: string }
        if (id !== undefined && id === status?.leader) found = one
      }
      if (!found) throw new Error('no member leads')
    })
    return found as EtcdMember
  }
  const ask: EtcdCluster['post'] = (where, body) =>
    Promise.any(
      members.map(async (_, n) => {
        const answer = await post(where, body, n)
        if ('error' in answer) throw new Error(String(answer.error))
        return answer
      }),
    )
  const listed = async () =>
    ((await ask('/v3/cluster/member/list', {})) as { members: { ID: string; name?: string; peerURLs?: string[] }[] })
      .members
  const idOf = async (n: number): Promise<string> => {
    const found = (await listed()).find(({ name }) => name === names[n])
    if (!found) throw new Error(`etcd has no member ${names[n]}`)
    return found.ID
  }
  const cut: EtcdCluster['cut'] = async (from, to) => peerProxies[to]?.refuse(BigInt(await idOf(from)).toString(16))
  const mend = (): void => {
    for (const proxy of peerProxies) proxy.accept()
  }
  const replace: EtcdCluster['replace'] = async (n) => {
    const ID = await eventually(() => idOf(n), 30_000)
    await members[n]?.kill()
    // Repeated until the result is visible: a lost answer may have been carried out, and a repetition is then refused.
    const isListed = async (of: (member: Awaited<ReturnType<typeof listed>>[number]) => boolean): Promise<boolean> =>
      (await listed()).some(of)
    const isThere = () => isListed((member) => member.ID === ID)
    const isBack = () => isListed((member) => member.ID !== ID && member.peerURLs?.includes(peerUrl(n)) === true)
    await eventually(async () => {
      if (await isThere()) await ask('/v3/cluster/member/remove', { ID })
    }, 60_000)
    await eventually(async () => {
      if (!(await isBack())) await ask('/v3/cluster/member/add', { peerURLs: [peerUrl(n)] })
    }, 60_000)
    await members[n]?.startAnew()
  }
  try {
    await Promise.all(members.map((one) => one.start()))
  } catch (error) {
    await end()
    throw error
  }
  const tlsUrls = tls ? members.map((_, n) => tlsUrl(n)) : []
  const urls = members.map(({ url }) => url)
  return { members, urls, tlsUrls, post, leader, cut, mend, replace, end, [Symbol.asyncDispose]: end }
}

interface ReplaceableMember extends EtcdMember {
  /** Without data, in a cluster that knows it. */
  startAnew(): Promise<void>
}

function member({ url, folder, args, cluster }: Start): ReplaceableMember {
  let child: ChildProcess | undefined
  let output = ''
  const signal = async (name: NodeJS.Signals): Promise<void> => {
    const ending = child
    if (!ending || ending.exitCode !== null || ending.signalCode !== null) return
    ending.kill('SIGCONT')
    const exited = once(ending, 'exit')
    ending.kill(name)
    await exited
  }
  let state = 'new'
  const start = async (): Promise<void> => {
    // Debian's etcd refuses unsupported architectures; the tests run on all.
    const env = { ...process.env, ETCD_UNSUPPORTED_ARCH: process.arch }
    const place = [`--data-dir=${folder}`, `--initial-cluster=${cluster}`, `--initial-cluster-state=${state}`]
    const started = spawn('etcd', [...args, ...place], { stdio: ['ignore', 'ignore', 'pipe'], env })
    endService(started)
    child = started
    started.stderr.on('data', (text: Buffer) => {
      output = (output + text.toString()).slice(-4_000)
    })
    const { hostname, port } = new URL(url)
    await eventually(async () => {
      if (started.exitCode !== null) throw new Error(`etcd ended with code ${started.exitCode}: ${output}`)
      const socket = net.connect(Number(port), hostname)
      await once(socket, 'connect').finally(() => socket.destroy())
    })
  }
  return {
    url,
    get pid() {
      return child?.pid ?? 0
    },
    kill: () => signal('SIGKILL'),
    stop: () => signal('SIGTERM'),
    pause: () => void (child?.pid !== undefined && pauseProcess(child.pid)),
    resume: () => void child?.kill('SIGCONT'),
    start,
    startAnew: async () => {
      fs.rmSync(folder, { recursive: true, force: true })
      state = 'existing'
      await start()
    },
  }
}
