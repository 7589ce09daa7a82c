// Real etcd for tests: members on loopback ports, in a folder of their own, ended by pid. They can be killed,
// paused, and started again on their data.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { eventually } from '../tools/eventually.ts'
import { freePort } from '../tools/free-port.ts'
import { pauseProcess } from './pause-process.ts'

export interface EtcdMember {
  readonly url: string
  readonly pid: number
  /** Kill -9, and wait until it is gone. */
  kill(): Promise<void>
  /** SIGTERM, and wait. */
  stop(): Promise<void>
  pause(): void
  resume(): void
  /** Again, on the same data and ports. */
  start(): Promise<void>
}

export interface EtcdCluster extends AsyncDisposable {
  readonly members: readonly EtcdMember[]
  readonly urls: readonly string[]
  /** With TLS, where that was asked for. */
  readonly tlsUrls: readonly string[]
  /** Asks etcd's own HTTP gateway, as an operator's tool would. */
  post(path: string, body: object, member?: number): Promise<Record<string, unknown>>
  /** The member that leads. */
  leader(): Promise<EtcdMember>
  end(): Promise<void>
}

export interface EtcdClusterOptions {
  readonly size?: number
  /** On the disk, as in production: for who measures. */
  readonly isDurable?: boolean
  /** More arguments for every member. */
  readonly args?: readonly string[]
  /** Files; every member listens by TLS as well then, and asks for a certificate of that authority. */
  readonly tls?: { readonly ca: string; readonly cert: string; readonly key: string }
}

/** Quick elections where one member is all, so that it is there at once; etcd's own times where there are several. */
const quick = ['--heartbeat-interval=10', '--election-timeout=100']
/** In memory where there is such a place: what is tested is our side. */
const place = fs.existsSync('/dev/shm') ? '/dev/shm' : os.tmpdir()

export async function startEtcd({
  size = 1,
  isDurable = false,
  args = [],
  tls,
}: EtcdClusterOptions = {}): Promise<EtcdCluster> {
  const folder = fs.mkdtempSync(path.join(isDurable ? os.tmpdir() : place, 'svc3-etcd-'))
  const ports = await Promise.all(Array.from({ length: 3 * size }, freePort))
  const clientUrl = (n: number): string => `http://127.0.0.1:${ports[3 * n]}`
  const peerUrl = (n: number): string => `http://127.0.0.1:${ports[3 * n + 1]}`
  const tlsUrl = (n: number): string => `https://127.0.0.1:${ports[3 * n + 2]}`
  const tlsArgs = tls
    ? [`--trusted-ca-file=${tls.ca}`, `--cert-file=${tls.cert}`, `--key-file=${tls.key}`, '--client-cert-auth']
    : []
  const names = Array.from({ length: size }, (_, n) => `m${n}`)
  const members = names.map((name, n) =>
    member(clientUrl(n), [
      `--name=${name}`,
      `--data-dir=${path.join(folder, name)}`,
      `--listen-client-urls=${[clientUrl(n), ...(tls ? [tlsUrl(n)] : [])].join()}`,
      `--advertise-client-urls=${clientUrl(n)}`,
      `--listen-peer-urls=${peerUrl(n)}`,
      `--initial-advertise-peer-urls=${peerUrl(n)}`,
      `--initial-cluster=${names.map((other, m) => `${other}=${peerUrl(m)}`).join()}`,
      '--log-level=error',
      ...(size === 1 ? quick : []),
      ...tlsArgs,
      ...args,
    ]),
  )
  const end = async (): Promise<void> => {
    await Promise.all(members.map((one) => one.kill()))
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
  try {
    await Promise.all(members.map((one) => one.start()))
  } catch (error) {
    await end()
    throw error
  }
  const tlsUrls = tls ? members.map((_, n) => tlsUrl(n)) : []
  return { members, urls: members.map(({ url }) => url), tlsUrls, post, leader, end, [Symbol.asyncDispose]: end }
}

function member(url: string, args: readonly string[]): EtcdMember {
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
  const start = async (): Promise<void> => {
    // Debian's etcd is not supported on every architecture by its authors; the tests run on all of ours.
    const env = { ...process.env, ETCD_UNSUPPORTED_ARCH: process.arch }
    const started = spawn('etcd', args, { stdio: ['ignore', 'ignore', 'pipe'], env })
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
  }
}
