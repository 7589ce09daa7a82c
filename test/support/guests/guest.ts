// Real guests for tests: the built-in images, built once for all tests of a machine, and SSH into them.
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { Client } from 'ssh2'
import { buildGuest, type GuestName } from '../../../packages/tiny-guests/build.ts'
import { exec } from '../../../src/platform/exec.ts'
import { isAllTested } from '../tools/all-tested.ts'

export type Architecture = 'amd64' | 'arm64'

/** For arm64, the README's tour and vms.test.ts cover deploy, save, commit, push and pull; test/long covers everything. */
export const testedArchitectures: readonly Architecture[] = isAllTested ? ['amd64', 'arm64'] : ['amd64']

/** Per user, so that files of other users are not trusted, and per digest of the builder's sources. */
export const tinyCache = path.join(
  process.env.SVC3_TINY_CACHE ?? path.join(os.tmpdir(), `svc3-tiny-${process.getuid?.() ?? 'user'}`),
  recipeHash(),
)

function recipeHash(): string {
  const folder = path.resolve(import.meta.dirname, '../../../packages/tiny-guests')
  const hash = createHash('sha256')
  for (const name of readdirSync(folder).sort())
    if (name.endsWith('.ts') && !name.endsWith('.test.ts')) hash.update(readFileSync(path.join(folder, name)))
  return hash.digest('hex').slice(0, 16)
}

/** Copies built images to a node's folder. */
export async function seedGuests(imageFolder: string, names: readonly GuestName[]): Promise<void> {
  await fs.mkdir(imageFolder, { recursive: true })
  const seed = async (name: GuestName): Promise<void> => {
    await buildGuest({ name, folder: tinyCache, signal: AbortSignal.timeout(390_000) })
    await exec('cp', ['-r', '--sparse=always', path.join(tinyCache, name), path.join(imageFolder, name)])
  }
  await Promise.all(names.map(seed))
}

export const seedTiny = (imageFolder: string, architectures: readonly Architecture[]): Promise<void> =>
  seedGuests(
    imageFolder,
    architectures.map((architecture) => `tiny-${architecture}` as const),
  )

export interface Guest extends Disposable {
  /** The trimmed output; throws if the command fails. */
  run(command: string, timeoutMs?: number): Promise<string>
}

export interface SshPlace {
  readonly ip: string
  readonly ssh: number
}

/** Waits until the guest accepts SSH. */
export async function openGuest(
  { ip, ssh }: SshPlace,
  login: { user?: string; password?: string } = {},
  timeoutMs = 300_000,
): Promise<Guest> {
  const { user = 'admin', password = user } = login
  const untilMs = performance.now() + timeoutMs
  let readyTimeout = 15_000
  // A guest that is not listening yet notices an early connection only seconds later or never, so the first attempts are
  // short. On a busy host a guest takes seconds to greet.
  let greetingMs = 600
  for (;;) {
    const tryMs = performance.now()
    try {
      if ((await greeting(ip, ssh, greetingMs)) === undefined) throw new Error('it does not greet')
      const client = await connect({ host: ip, port: ssh, username: user, password, readyTimeout })
      // One at a time: dropbear confuses channels if one command ends before another has begun.
      let before: Promise<unknown> = Promise.resolve()
      return {
        run(command, timeoutMs = 120_000) {
          const running = before.then(() => run(client, command, timeoutMs))
          before = running.catch(() => undefined)
          return running
        },
        [Symbol.dispose]: () => client.destroy(),
      }
    } catch (error) {
      if (performance.now() > untilMs) throw new Error(`no SSH at ${ip}:${ssh}`, { cause: error })
      // A slow guest gets more time for the next attempt.
      if (performance.now() - tryMs >= greetingMs) greetingMs = Math.min(greetingMs * 1.15, 20_000)
      if (performance.now() - tryMs >= readyTimeout) readyTimeout = 30_000
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }
}

function connect(options: Parameters<Client['connect']>[0]): Promise<Client> {
  return new Promise((resolve, reject) => {
    const client = new Client()
    client.on('ready', () => resolve(client))
    client.on('error', reject)
    client.on('close', () => reject(new Error('closed')))
    client.connect(options)
  })
}

async function run(client: Client, command: string, timeoutMs: number): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const timer = setTimeout(() => reject(new Error(`"${command}" took longer than ${timeoutMs} ms`)), timeoutMs)
  // A command in a stopped guest gives no answer.
  const closed = (): void => reject(new Error(`the connection was closed during "${command}"`))
  client.once('close', closed)
  try {
    client.exec(command, (error, channel) => {
      if (error) return reject(error)
      let output = ''
      channel.on('data', (chunk: Buffer) => {
        output += chunk
      })
      channel.stderr.on('data', (chunk: Buffer) => {
        output += chunk
      })
      channel.on('close', (code: number) => {
        if (code === 0) resolve(output.trim())
        else reject(new Error(`"${command}" ended with ${code}: ${output}`))
      })
    })
    return await promise
  } finally {
    clearTimeout(timer)
    client.off('close', closed)
  }
}

/** The first bytes that a server sends; undefined if none listens. `timeoutMs` is for callers that expect silence. */
export function greeting(ip: string, port: number, timeoutMs = 60_000): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = net.connect(port, ip)
    const done = (text?: string): void => {
      socket.destroy()
      resolve(text)
    }
    socket.setTimeout(timeoutMs, () => done(undefined))
    socket.on('error', () => done(undefined))
    socket.once('data', (chunk) => done(chunk.toString('latin1')))
    socket.once('end', () => done(undefined))
  })
}
