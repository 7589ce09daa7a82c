// Three etcd members and three servers on separate hosts, set up by the steps of docs/operate/several-servers.md with
// other addresses.
import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import path from 'node:path'
import { exec } from '../../../src/platform/exec.ts'
import { eventually } from '../tools/eventually.ts'
import { program, root } from './dev-server.ts'
import type { TestHost } from './hosts.ts'
import { endService } from './leftovers.ts'

export interface Service {
  readonly host: TestHost
  output(): string
  start(): Promise<void>
  /** Stops it as a supervisor does; returns the exit code. */
  stop(signal?: NodeJS.Signals): Promise<number | null>
}

interface OperatedCluster {
  readonly members: readonly Service[]
  readonly servers: readonly Service[]
  readonly storeAddress: string
  readonly masterKey: string
  /** For HAProxy. */
  readonly balancerConfig: string
}

const names = ['a', 'b', 'c'] as const
const written = (n: number): string => `10.0.0.${11 + n}`

/** The code blocks of a step. */
export function blocksBelow(page: string, heading: string): string[] {
  const [, step = ''] = page.split(`\n## ${heading}\n`)
  const blocks = [...(step.split('\n## ')[0]?.matchAll(/```\w*\n([\s\S]*?)```/g) ?? [])].map(([, block = '']) => block)
  if (blocks.length === 0) throw new Error(`docs/operate/several-servers.md has no block below "${heading}"`)
  return blocks
}
const blockBelow = (page: string, heading: string): string => blocksBelow(page, heading)[0] ?? ''
const field = (unit: string, name: string): string => {
  const match = new RegExp(`^${name}=(.*)$`, 'm').exec(unit.replaceAll('\\\n', ' '))
  if (!match?.[1]) throw new Error(`the unit has no ${name}`)
  return match[1]
}

/** Starts nothing. `publicUrl` is the load balancer's. */
export async function setUpCluster(
  folder: string,
  hosts: readonly TestHost[],
  publicUrl: string,
): Promise<OperatedCluster> {
  const page = await fs.readFile(path.join(root, 'docs/operate/several-servers.md'), 'utf8')
  const etc = path.join(folder, 'etc')
  await fs.mkdir(etc)
  /** With the addresses of these hosts, below a temporary folder. */
  const moved = (text: string): string =>
    hosts
      .reduce((all, { address }, n) => all.replaceAll(written(n), address), text)
      .replaceAll('/etc/svc3/etcd', etc)
      .replaceAll('https://svc3.example.com', publicUrl)
  await exec('sh', ['-ec', moved(blockBelow(page, '1. Certificates for etcd'))], { cwd: etc })
  await exec('sh', ['-ec', blockBelow(page, '3. The master key, once')], { cwd: folder })
  const masterKey = (await fs.readFile(path.join(folder, 'master.key'), 'utf8')).trim()
  await fs.copyFile(path.join(folder, 'master.key'), path.join(etc, 'svc3-master-key'))

  const etcdUnit = blockBelow(page, '2. Three members of etcd')
  const serverUnit = blockBelow(page, '4. Three servers')
  /** Rewrites the example for host a to host n. */
  const forHost = (words: string, n: number): string[] =>
    words.split(/\s+/).map((word) =>
      word.startsWith('--initial-cluster=')
        ? word
        : word
            .replaceAll(written(0), written(n))
            .replace('--name=a', `--name=${names[n]}`)
            .replace(/\/a\.(pem|key)$/, `/${names[n]}.$1`),
    )
  const isHealthy = async ({ address }: TestHost): Promise<boolean> => {
    const files = ['--cacert', `${etc}/ca.pem`, '--cert', `${etc}/svc3.pem`, '--key', `${etc}/svc3.key`]
    const asking = exec('curl', ['-s', '-m', '2', ...files, `https://${address}:2379/health`])
    return asking.then(
      ({ stdout }) => stdout.includes('"true"'),
      () => false,
    )
  }
  const members = hosts.map((host, n) => {
    const words = forHost(field(etcdUnit, 'ExecStart'), n).map(moved)
    const [command = '', ...args] = words.map((word) =>
      word.replace('/var/lib/etcd', path.join(folder, host.name, 'etcd')),
    )
    // Hosts that are not really separate share a loopback.
    const own = args.map((word) => (host.isApart ? word : word.replace(',https://127.0.0.1:2379', '')))
    return service(host, command, [...own, '--log-level=error'], {}, async () => assert.ok(await isHealthy(host)))
  })
  const [, storeAddress = ''] = /^Environment="SVC3_STORE=(.*)"$/m.exec(serverUnit) ?? []
  const servers = hosts.map((host, n) => {
    const data = path.join(folder, host.name, 'svc3')
    const [, ...args] = forHost(field(serverUnit, 'ExecStart'), n)
      .map(moved)
      .map((word) => (host.isApart ? word : word.replace('0.0.0.0', host.address)))
    const environment = { SVC3_DATA: data, SVC3_STORE: moved(storeAddress), CREDENTIALS_DIRECTORY: etc }
    return service(host, program, args, environment, async (one) => {
      if (!/^svc3 ready at /m.test(one.output())) throw new Error(`a server does not start: ${one.output()}`)
    })
  })
  return {
    members,
    servers,
    masterKey,
    balancerConfig: moved(blockBelow(page, '5. The load balancer')),
    storeAddress: moved(storeAddress),
  }
}

/** A program run directly in place of systemd. */
export function service(
  host: TestHost,
  command: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
  isUp: (service: Service) => Promise<void>,
): Service {
  let child: ChildProcess | undefined
  let output = ''
  const one: Service = {
    host,
    output: () => output,
    async start() {
      output = ''
      const started = host.spawn(command, args, {
        env: { ...process.env, ...environment },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      endService(started)
      child = started
      for (const stream of [started.stdout, started.stderr])
        stream?.on('data', (chunk: Buffer) => {
          output = (output + chunk).slice(-20_000)
        })
      let isOver = false
      const ended = once(started, 'exit').then(([code]) => {
        isOver = true
        throw new Error(`${command} on ${host.name} ended with ${code}: ${output}`)
      })
      // From here on it may end.
      ended.catch(() => undefined)
      await Promise.race([eventually(() => (isOver ? undefined : isUp(one)), 120_000), ended])
    },
    async stop(signal = 'SIGTERM') {
      if (!child || child.exitCode !== null || child.signalCode !== null) return child?.exitCode ?? null
      const exited = once(child, 'exit')
      child.kill(signal)
      await exited
      return child.exitCode
    },
  }
  return one
}
