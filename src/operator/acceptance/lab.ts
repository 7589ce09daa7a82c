// What an acceptance run starts: a server and an agent in a folder. On a Mac the agent is a daemon of launchd, with the
// property list of `svc3 agent install` under another label; elsewhere it is a child process.
import { spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Node } from '../../api/nodes/nodes.ts'
import { UsageError } from '../../cli/line/usage.ts'
import { readConnection } from '../../control-plane/connection.ts'
import { daemonFolder, labels, launchdList, logFile } from '../../host/launchd.ts'
import { childEnvironment, exec, lastLines } from '../../platform/exec.ts'
import { everyProcess } from '../../platform/processes.ts'
import { succeeds } from '../../platform/succeeds.ts'

const label = 'io.svc3.acceptance'
const plist = `${daemonFolder}/${label}.plist`
/** Its name marks a folder that a run may delete. */
const serverLog = 'svc3-acceptance-server.log'
const maxWaitMs = 60_000
/** Steps have time limits of their own. */
const commandMs = 7_200_000

/** Repeats an attempt, for what this program gets no event of. When it is aborted, it throws the last error of an attempt. */
export async function until<T>(signal: AbortSignal, attempt: () => Promise<T>): Promise<T> {
  for (let last: unknown; ; ) {
    try {
      return await attempt()
    } catch (error) {
      if (signal.aborted) throw last ?? error
      last = error
      await sleep(300, undefined, { signal }).catch(() => Promise.reject(error))
    }
  }
}

const limited = (signal: AbortSignal): AbortSignal => AbortSignal.any([signal, AbortSignal.timeout(maxWaitMs)])

/** sudo asks on the terminal, so it stays in the process group of this program. */
async function asRoot(words: readonly string[], input = ''): Promise<void> {
  const child = spawn('sudo', words, { stdio: ['pipe', 'ignore', 'inherit'] })
  child.stdin.on('error', () => undefined).end(input)
  const code = await new Promise((resolve, reject) => child.on('exit', resolve).on('error', reject))
  if (code !== 0) throw new Error(`sudo ${words[0]} failed with exit code ${code}`)
}

export class Lab {
  readonly folder: string
  readonly hasDaemon = process.platform === 'darwin'
  readonly #self: readonly string[]
  /** The address of the server. */
  url = ''

  constructor(folder: string, self: readonly string[]) {
    this.folder = folder
    this.#self = self
  }

  at(...names: readonly string[]): string {
    return path.join(this.folder, ...names)
  }

  /** Whether a run left the folder. Throws if it is anything else than such a folder or an empty one. */
  async isUsed(): Promise<boolean> {
    const files = await fs.readdir(this.folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [] as string[]
      throw new UsageError(`${this.folder} cannot be used (${error.code})`, 'Choose another folder with --data')
    })
    if (files.length === 0 || files.includes(serverLog)) return files.length > 0
    throw new UsageError(`${this.folder} has other files`, 'Choose another folder with --data')
  }

  /** Without variables of svc3, which would lead to another server. */
  get #environment(): Readonly<Record<string, string>> {
    const { TART_HOME } = process.env
    return { ...childEnvironment, HOME: os.homedir(), SVC3_DATA: this.at('server'), ...(TART_HOME && { TART_HOME }) }
  }

  async serve(signal: AbortSignal, port: number): Promise<void> {
    const data = this.at('server')
    const listen = ['--listen', `127.0.0.1:${port}`, '--kubernetes-listen', 'none']
    const ownPid = await this.#spawn(serverLog, ['dev', ...listen, '--nodes', 'arm64=0,amd64=0', '--data', data])
    this.url = await until(limited(signal), async () => {
      const { pid, apiUrl } = (await readConnection(data)) ?? {}
      if (pid === ownPid && apiUrl) return apiUrl
      throw new Error(`The server did not start: ${await this.#logged(serverLog)}`)
    })
  }

  /** Starts the agent in place of one that runs, and waits until its node is ready. VMs keep running. */
  async startAgent(signal: AbortSignal, { url = this.url, images = '' } = {}): Promise<Node> {
    await this.#unload()
    const dataDir = this.at('node')
    await this.#end(` --data ${dataDir} `)
    await fs.mkdir(dataDir, { recursive: true, mode: 0o700 })
    // The rule that closes screens to other hosts comes with `svc3 agent install`.
    await fs.writeFile(this.at('node', 'agent.json'), '{"apple":{"screen":"open"}}', { mode: 0o600 })
    const { token } = await this.json<{ token: string }>(['node', 'join-token'], signal)
    await fs.writeFile(this.at('join-token'), token, { mode: 0o600 })
    const joins = ['--data', dataDir, '-a', url, '--join-token-file', this.at('join-token')]
    const words = ['agent', '--driver', 'apple', '--name', 'acceptance', ...joins]
    if (images !== '') words.push('--images', images)
    const sinceMs = Date.now()
    if (this.hasDaemon) {
      const service = { kind: 'agent', user: os.userInfo().username, groups: [], dataDir, writes: [] } as const
      const list = launchdList({ ...service, command: [...this.#self, ...words] })
      const log = this.at('agent.log')
      await asRoot(['tee', plist], list.replace(labels.agent, label).replaceAll(logFile('agent'), log))
      // launchd refuses a service that it is still unloading.
      await until(limited(signal), () => asRoot(['launchctl', 'bootstrap', 'system', plist]))
    } else await this.#spawn('agent.log', words)
    return await this.nodeReady(signal, sinceMs)
  }

  /** Waits for a report that the agent sent after `sinceMs`. */
  nodeReady(signal: AbortSignal, sinceMs = 0): Promise<Node> {
    return until(signal, async () => {
      const node = await this.json<Node>(['node', 'list', 'acceptance'], signal)
      // The time has whole seconds.
      const isNew = Date.parse(node.lastSeenAt ?? '') + 1_000 > sinceMs
      if (node.phase === 'READY' && isNew) return node
      throw new Error(`The node is not ready: ${node.reason ?? ''}. Its log: ${await this.#logged('agent.log')}`)
    })
  }

  /** Runs a command of this program on the server, as users do, and returns its output. */
  svc3(words: readonly string[], signal: AbortSignal, input = ''): Promise<string> {
    const [program = '', ...first] = this.#self
    return this.#run(program, [...first, ...words], { signal, input, env: this.#environment })
  }

  /** Returns the only record that a command prints. */
  async json<T>(words: readonly string[], signal: AbortSignal): Promise<T> {
    return [JSON.parse(await this.svc3([...words, '-o', 'json'], signal))].flat()[0]
  }

  tart(home: string, words: readonly string[], signal: AbortSignal): Promise<string> {
    return this.#run('tart', words, { signal, env: { ...this.#environment, CI: 'true', TART_HOME: home } })
  }

  async #run(program: string, words: readonly string[], options: Parameters<typeof exec>[2]): Promise<string> {
    return (await exec(program, words, { ...options, timeoutMs: commandMs })).stdout.trim()
  }

  /** Whole arguments: a shell or editor may have the folder in its own. */
  get #services(): readonly string[] {
    return ['server', 'node'].map((name) => ` --data ${this.at(name)} `)
  }

  /** Kills the server, and the agent, which launchd starts again. VMs keep running. */
  stop(): Promise<void> {
    return this.#end(...this.#services)
  }

  /** Ends everything that uses the folder, also what a killed run left, and deletes the folder. */
  async cleanUp(): Promise<void> {
    await this.#unload()
    await this.#end(...this.#services, ` --dir=svc3:${this.folder}/`)
    await fs.rm(this.folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  }

  async #unload(): Promise<void> {
    if (!this.hasDaemon || !(await succeeds(fs.access(plist)))) return
    // It is not loaded if an earlier run was killed at the wrong moment.
    await asRoot(['launchctl', 'bootout', `system/${label}`]).catch(() => undefined)
    await asRoot(['rm', '-f', plist])
  }

  /** Kills the processes with one of these texts in their arguments, and waits until they have ended. */
  async #end(...marks: readonly string[]): Promise<void> {
    for (let round = 0; round < 100; round++) {
      const isMarked = (line: string): boolean => marks.some((mark) => line.includes(mark))
      const left = (await everyProcess()).filter(({ words }) => isMarked(` ${words.join(' ')} `))
      if (left.length === 0) return
      for (const { pid } of left) await killNow(pid)
      await sleep(100)
    }
  }

  async #spawn(log: string, words: readonly string[]): Promise<number | undefined> {
    const [program = '', ...first] = this.#self
    await using file = await fs.open(this.at(log), 'a', 0o600)
    // Detached, so that Ctrl-C reaches this program alone, which then cleans up in order.
    const options = { detached: true, env: this.#environment }
    return spawn(program, [...first, ...words], { ...options, stdio: ['ignore', file.fd, file.fd] }).pid
  }

  async #logged(name: string): Promise<string> {
    return lastLines(await fs.readFile(this.at(name), 'utf8').catch(() => ''), 3)
  }
}

/** A process that has ended is no error. */
export const killNow = (pid: number) => succeeds((async () => process.kill(pid, 'SIGKILL'))())
