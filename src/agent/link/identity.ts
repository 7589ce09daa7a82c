// The identity of a node: an Ed25519 key that never leaves the node. With it the node joins the cluster once, and then gets
// tokens that are valid for an hour, each with a certificate for the key.
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
  /** Assigned by the cluster when the node joins. */
  readonly uid: string | undefined
  /** For connections to other nodes. They come with a token and are kept in memory only. */
  readonly credentials: NodeCredentials | undefined
  /** May be repeated with the same key. */
  join(client: Client, token: string, signal: AbortSignal): Promise<void>
  /** Replaces the key. The cluster refuses the old one from then on. */
  renewKey(client: Client, signal: AbortSignal): Promise<void>
  /** Stores the addresses of servers for the next start. */
  remember(apiUrls: readonly string[]): Promise<void>
  issueToken(client: Client, signal: AbortSignal): Promise<AgentToken>
}

export interface AgentToken {
  readonly token: string
  /** In terms of performance.now(), because the time of day may be changed. */
  readonly renewAtMs: number
}

interface NodeFile {
  readonly version: 1
  readonly name: string
  /** PKCS #8 in base64. */
  readonly privateKey: string
  /** A new key, if it is not known whether the cluster has accepted it. */
  readonly nextKey?: string
  readonly uid?: string
  readonly apiUrl?: string
  readonly apiUrls?: readonly string[]
  /** The fingerprint of the servers' key, for self-signed certificates. */
  readonly pin?: string
}

export class IdentityError extends Error {
  override readonly name = 'IdentityError'
}

const callTimeoutMs = 15_000

/** Reads the identity in a folder, or creates one. */
export async function openNodeIdentity(folder: string, wantedName: string, pin?: string): Promise<NodeIdentity> {
  await fs.mkdir(folder, { recursive: true, mode: 0o700 })
  const file = path.join(folder, 'node.json')
  const text = await readFileIfPresent(file)
  // The key is written before it is used, so that an interrupted join is repeated with the same key.
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
      // The key is written before it is sent. If the answer is lost, one of the two keys is valid.
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

/** Three quarters of the remaining validity, within limits: with a wrong clock, a token must not be issued for every call. */
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
    // Reported below.
  }
  throw new IdentityError(`${file} cannot be read as a node's identity; restore it, or remove it and join again`)
}
