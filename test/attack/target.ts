// A server process from the build, with the limits of a production server, a namespace under attack, one that belongs to other
// people, and a token of each kind of caller.
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { parseKeyring } from '../../src/auth/keyring.ts'
import { Secrets } from '../../src/auth/secrets.ts'
import { loadSigningKeys } from '../../src/auth/signing-keys.ts'
import { createTokens } from '../../src/auth/tokens.ts'
import { systemClock, timestamp } from '../../src/platform/clock.ts'
import { openStore } from '../../src/store/open.ts'
import { openCollections } from '../../src/store/records/collections.ts'
import { makeFolder, program, startDev } from '../support/processes/dev-server.ts'
import { joinAs } from '../support/stand-ins/node.ts'
import { freePort } from '../support/tools/free-port.ts'
import type { Program } from './watch.ts'

/** The attacked developer's namespace, and one of other people. */
export const team = 'svc-team'
export const others = 'svc-others'

export interface Target extends Program, AsyncDisposable {
  readonly apiUrl: string
  readonly kubernetesUrl: string
  readonly tokens: {
    readonly admin: string
    /** A developer of `team` only. */
    readonly developer: string
    /** A developer of `others` only. */
    readonly other: string
    /** A user without any role. */
    readonly lowest: string
    /** The agent of a node that has joined and never connected. */
    readonly node: string
  }
  /** A request of an administrator; fails unless it succeeds. `where` is below /api/v1. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  admin(method: string, where: string, body?: object): Promise<any>
}

interface TargetOptions {
  /** For config.json, in addition to the defaults. */
  readonly settings?: object
  readonly env?: Record<string, string>
}

export async function startTarget({ settings = {}, env = {} }: TargetOptions = {}): Promise<Target> {
  const folder = await makeFolder()
  const masterKey = randomBytes(32).toString('base64')
  await fs.writeFile(path.join(folder, 'config.json'), JSON.stringify(settings))
  const [admin = '', ...people] = await tokensFor(folder, masterKey, ['admin', 'developer', 'other', 'lowest'])
  const [developer = '', other = '', lowest = ''] = people
  const kubernetesPort = await freePort()
  const words = ['--plain-http', '--kubernetes-listen', `127.0.0.1:${kubernetesPort}`]
  const { SVC3_ATTACK_PROFILE: profile } = process.env
  const profiling = profile === undefined ? {} : { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${profile}` }
  const more = { SVC3_MASTER_KEY: masterKey, ...profiling, ...env }
  const server = await startDev(folder, { command: [program, 'server'], args: words, env: more })
  const { apiUrl, output } = server
  const target = {
    apiUrl,
    kubernetesUrl: `https://127.0.0.1:${kubernetesPort}`,
    pid: server.pid,
    pingUrl: `${apiUrl}/healthz`,
    folder,
    tokens: { admin, developer, other, lowest, node: '' },
    output,
    // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
    admin: async (method: string, where: string, body?: object): Promise<any> => {
      const response = await fetch(`${apiUrl}/api/v1${where}`, {
        method,
        headers: { authorization: `Bearer ${admin}`, ...(body && { 'content-type': 'application/json' }) },
        ...(body && { body: JSON.stringify(body) }),
      })
      const text = await response.text()
      if (!response.ok) throw new Error(`${method} ${where}: ${response.status} ${text}`)
      return JSON.parse(text)
    },
    [Symbol.asyncDispose]: async () => {
      // An orderly end, so that a profile that Node writes at its exit is whole.
      const late = setTimeout(() => void server.kill('SIGKILL'), 20_000)
      await server.kill('SIGTERM')
      clearTimeout(late)
      await fs.rm(folder, { recursive: true, force: true })
    },
  }
  for (const name of [team, others]) await target.admin('POST', '/namespaces', { name })
  const grant = (namespace: string, user: string): Promise<unknown> =>
    target.admin('POST', `/namespaces/${namespace}/rolebindings/svc-dev/subjects/add`, { users: [emailOf(user)] })
  await grant(team, 'developer')
  await grant(others, 'other')
  // In the default namespace every user is a developer otherwise.
  const users = ['developer', 'other', 'lowest'].map(emailOf)
  await target.admin('DELETE', '/namespaces/svc-default/rolebindings/svc-dev/subjects/remove', { users })
  // What VM configurations and VMs name.
  await target.admin('POST', `/namespaces/${team}/images`, { name: 'any', size: '1G' })
  const { token: joinToken } = await target.admin('POST', `/namespaces/${team}/jointokens`, {})
  const at = timestamp(new Date())
  const post = (where: string, body: object) => target.admin('POST', `/agent/${where}`, body)
  target.tokens.node = await joinAs('mini-9', { joinToken, at, post })
  return target
}

const emailOf = (user: string): string => `${user}@example.com`

/** Tokens of these users for a day, signed with keys in the store of a server that was not started yet. */
async function tokensFor(folder: string, masterKey: string, users: readonly string[]): Promise<string[]> {
  const store = await openStore(`sqlite:${folder}`)
  try {
    await using collections = await openCollections(store)
    const secrets = new Secrets(parseKeyring(masterKey, 'the key of the test'))
    using keys = await loadSigningKeys(collections.signingKeys, secrets, systemClock)
    const { issue } = createTokens(keys, systemClock, () => true)
    const issued: string[] = []
    for (const user of users)
      issued.push((await issue({ kind: 'user', name: emailOf(user), admin: user === 'admin' }, 86_400)).token)
    return issued
  } finally {
    await store.close()
  }
}
