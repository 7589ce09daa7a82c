// Who this node is: an Ed25519 key of its own, made here and never sent, with which it joined the cluster once and gets
// tokens for an hour since, each with a certificate for that key.
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { ApiError } from '../../api/errors.ts'
import { issueAgentToken, joinCluster } from '../../api/nodes/agent.ts'
import { replaceNodeKey } from '../../api/nodes/node-key.ts'
import type { Client } from '../../client/client.ts'
import { timestamp } from '../../platform/clock.ts'
import { readFileIfPresent, writeFileAtomically } from '../../platform/files.ts'
import type { NodeCredentials } from './peer-tls.ts'

export interface NodeIdentity {
  readonly name: string
  /** Given by the cluster; missing until it was joined. */
  readonly uid: string | undefined
  /** What it shows to other nodes: of the last token, and kept in memory only. Missing until a server gave one. */
  readonly credentials: NodeCredentials | undefined
  /** Takes up the node's place in the cluster. Again with the same key: fine. */
  join(client: Client, token: string, signal: AbortSignal): Promise<void>
  /** The node gets another key; the one that it had is refused from then on. */
  renewKey(client: Client, signal: AbortSignal): Promise<void>
  /** Where servers are, for the next start. */
  remember(apiUrls: readonly string[]): Promise<void>
  /** For the operations of agents. */
  issueToken(client: Client, signal: AbortSignal): Promise<AgentToken>
}

export interface AgentToken {
  readonly token: string
  /** By this machine's monotonic clock, performance.now(): whatever its time of day is set to meanwhile. */
  readonly renewAtMs: number
}

interface NodeFile {
  readonly version: 1
  readonly name: string
  /** PKCS #8 in base64. */
  readonly privateKey: string
  /** The next one, of which it is not known whether the cluster has taken it. */
  readonly nextKey?: string
  readonly uid?: string
  readonly apiUrl?: string
  /** All that were known last. */
  readonly apiUrls?: readonly string[]
  /** By which the servers are known where no authority vouches for them. */
  readonly pin?: string
}

export class IdentityError extends Error {
  override readonly name = 'IdentityError'
}

const callTimeoutMs = 15_000

/** The identity in a folder; a new one when there is none. */
export async function openNodeIdentity(folder: string, wantedName: string, pin?: string): Promise<NodeIdentity> {
  await fs.mkdir(folder, { recursive: true, mode: 0o700 })
  const file = path.join(folder, 'node.json')
  const text = await readFileIfPresent(file)
  // Written before it is used: a join that was cut off is repeated with the same key.
  let node = text === undefined ? await makeNode(file, wantedName) : parseNode(text, file)
  if (node.uid === undefined && node.name !== wantedName) node = await keep(file, { ...node, name: wantedName })
  if (node.name !== wantedName)
    throw new IdentityError(
      `${folder} belongs to node ${node.name}, not ${wantedName}; use that name or another folder`,
    )
  let credentials: NodeCredentials | undefined
  const takeNextKey = async (): Promise<void> => {
    const { nextKey, ...others } = node
    if (nextKey !== undefined) node = await keep(file, { ...others, privateKey: nextKey })
  }
  const tokenBy = async (key: string, client: Client, signal: AbortSignal) => {
    const at = timestamp(new Date())
    const body = { name: node.name, at, signature: signed(key, `svc3-agent\n${node.name}\n${at}`) }
    const issued = await client.call(issueAgentToken, { body, signal, timeoutMs: callTimeoutMs })
    if (issued.certificate) credentials = { ...issued.certificate, key: pemOf(key) }
    return issued
  }

  return {
    name: node.name,
    get uid() {
      return node.uid
    },
    get credentials() {
      return credentials
    },
    async join(client, token, signal) {
      const body = { token, name: node.name, publicKey: publicKeyOf(node.privateKey) }
      const { uid } = await client.call(joinCluster, { body, signal, timeoutMs: callTimeoutMs })
      node = await keep(file, { ...node, uid, apiUrl: client.baseUrl, ...(pin !== undefined && { pin }) })
    },
    async remember(apiUrls) {
      node = await keep(file, { ...node, apiUrls })
    },
    async renewKey(client, signal) {
      const nextKey = node.nextKey ?? newKey()
      // Written before it is sent: whatever is lost then, one of the two is the node's.
      node = await keep(file, { ...node, nextKey })
      const [name, at, publicKey] = [node.name, timestamp(new Date()), publicKeyOf(nextKey)]
      const signature = signed(node.privateKey, `svc3-agent-key\n${name}\n${publicKey}\n${at}`)
      const body = { name, at, publicKey, signature }
      await client.call(replaceNodeKey, { body, signal, timeoutMs: callTimeoutMs })
      await takeNextKey()
    },
    async issueToken(client, signal) {
      const { nextKey } = node
      const issued = tokenBy(node.privateKey, client, signal).catch(async (error: unknown) => {
        if (nextKey === undefined || !isUnauthorized(error)) throw error
        const byNext = await tokenBy(nextKey, client, signal)
        await takeNextKey()
        return byNext
      })
      const { token, expiresAt } = await issued
      return { token, renewAtMs: performance.now() + usableMs(Date.parse(expiresAt) - Date.now()) }
    },
  }
}

/** Of what is left of a token, the first three quarters. A clock that is far off must not make a token for every call. */
const usableMs = (leftMs: number): number => 0.75 * Math.min(Math.max(leftMs, 60_000), 3_600_000)

export const isUnauthorized = (error: unknown): boolean => error instanceof ApiError && error.code === 401

const newKey = (): string =>
  generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64')
const opened = (key: string): KeyObject =>
  createPrivateKey({ key: Buffer.from(key, 'base64'), format: 'der', type: 'pkcs8' })
const pemOf = (key: string): string => opened(key).export({ type: 'pkcs8', format: 'pem' }).toString()
const publicKeyOf = (key: string): string =>
  createPublicKey(opened(key)).export({ type: 'spki', format: 'der' }).toString('base64')
const signed = (key: string, text: string): string => sign(null, Buffer.from(text), opened(key)).toString('base64')

const makeNode = (file: string, name: string): Promise<NodeFile> =>
  keep(file, { version: 1, name, privateKey: newKey() })

async function keep(file: string, node: NodeFile): Promise<NodeFile> {
  await writeFileAtomically(file, `${JSON.stringify(node, null, 2)}\n`, { mode: 0o600 })
  return node
}

function parseNode(text: string, file: string): NodeFile {
  try {
    const node = JSON.parse(text) as NodeFile
    if (node.version === 1 && typeof node.name === 'string' && typeof node.privateKey === 'string') return node
  } catch {
    // said below
  }
  throw new IdentityError(`${file} cannot be read as a node's identity; restore it, or remove it and join again`)
}
