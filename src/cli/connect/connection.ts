// Chooses the server and the token: --context, SVC3_API_URL, SVC3_DATA, SVC3_CONTEXT, the current context, or the connection
// file of the local server, in this order.

import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { ApiError } from '../../api/errors.ts'
import { isObject, type JsonObject, parseJson } from '../../api/json.ts'
import { processExists } from '../../platform/lock-file.ts'
import { isLoopback } from '../../rules/addresses.ts'
import { defaultNamespace, spelledAs } from '../../rules/names.ts'
import type { Host } from '../host.ts'
import { didYouMean } from '../line/suggest.ts'
import { Failure, UsageError } from '../line/usage.ts'
import { userFolder } from './folders.ts'

export interface ServerConnection {
  readonly apiUrl: string
  readonly token?: string | undefined
  readonly tokenExpiresAt?: string | undefined
  /** How to renew an expired token at the identity provider. */
  readonly renewal?: Renewal | undefined
  /** The namespace of the configured context. */
  readonly namespace?: string | undefined
  /** PEM file of the CAs to trust, instead of the system's. */
  readonly ca?: string | undefined
  /** The context that was used. */
  readonly context?: string | undefined
  /** The context that environment variables override. */
  readonly overridden?: string | undefined
  /** Where the address was found, for messages. */
  readonly source: string
  /** The file with the administrator's token of the local server, if that token is used. */
  readonly localLogin?: string | undefined
  /** Process ID of the local server. */
  readonly pid?: number | undefined
}

interface Renewal {
  /** The context to store the new token in. */
  readonly context: string
  readonly refreshToken: string
  readonly issuer: string
  readonly clientId: string
}

export function findConnection(host: Host): ServerConnection {
  const { SVC3_API_URL, SVC3_DATA, SVC3_TOKEN } = host.env
  const token = SVC3_TOKEN?.trim() || undefined
  const found = SVC3_API_URL
    ? byAddress(host, checkUrl(SVC3_API_URL, 'SVC3_API_URL'), token !== undefined)
    : SVC3_DATA
      ? byDataFolder(host, SVC3_DATA)
      : byConfiguration(host)
  if (!token) return { ...found, token: checkToken(found.token) }
  const { tokenExpiresAt: _, renewal: __, ...rest } = found
  return { ...rest, token: checkToken(token) }
}

/** Finds the connection for SVC3_API_URL. A stored token is sent only to its own server. */
function byAddress(host: Host, apiUrl: string, hasToken: boolean): ServerConnection {
  const named = { apiUrl, source: 'SVC3_API_URL' }
  const stored = (): ServerConnection => {
    const own = contextFor(host, apiUrl)
    const local = own?.token === undefined ? localConnection(host) : undefined
    const isLocal = local && isSame(local.apiUrl, apiUrl)
    return {
      ...own,
      ...(isLocal && { token: local.token, localLogin: local.localLogin }),
      ...named,
      ...overriding(host, own?.context),
    }
  }
  return hasToken ? readable(stored, named) : stored()
}

/** Ignores a broken configuration file, for callers that can do without it. */
function readable<T>(read: () => T, otherwise: T): T {
  try {
    return read()
  } catch {
    return otherwise
  }
}

/** Finds the server that runs on the folder of SVC3_DATA, even if a context is configured. */
function byDataFolder(host: Host, folder: string): ServerConnection {
  const local = localConnection(host)
  if (!local) {
    const context = currentContext(host)
    const instead = context === undefined ? '' : ` to use context ${context}`
    const place = path.resolve(host.workingDir, folder)
    throw new Failure(
      `No server is running on ${place} (SVC3_DATA)`,
      `Run svc3 dev --data ${place}, or unset SVC3_DATA${instead}`,
    )
  }
  const stored = (): ServerConnection => {
    const own = contextFor(host, local.apiUrl)
    return { ...merged(local, own), ...overriding(host, own?.context) }
  }
  return local.token === undefined ? stored() : readable(stored, local)
}

/** Finds the server of the current context, otherwise the local server. */
function byConfiguration(host: Host): ServerConnection {
  const context = contextConnection(host)
  if (context?.token !== undefined) return context
  const local = localConnection(host)
  if (context) return local && isSame(local.apiUrl, context.apiUrl) ? merged(local, context) : context
  if (local) return local
  throw new Failure(
    host.isInstalled
      ? 'No server is running on this machine, and no context is configured'
      : 'No server is running from this checkout, and no context is configured',
    host.isInstalled ? 'Run svc3 config set --api-url URL' : `${restart(host)}, or set SVC3_API_URL and SVC3_TOKEN`,
  )
}

/** A login to the local server takes precedence over the administrator's token in its connection file. */
const merged = (local: ServerConnection, own: ServerConnection | undefined): ServerConnection =>
  own?.token === undefined
    ? { ...local, namespace: own?.namespace, ca: own?.ca, context: own?.context }
    : { ...own, pid: local.pid }

/** The current context, unless it is a context of this server. */
export function contextElsewhere(host: Host, apiUrl: string): string | undefined {
  return readable(() => overriding(host, contextFor(host, apiUrl)?.context).overridden, undefined)
}

function overriding(host: Host, own: string | undefined): Pick<ServerConnection, 'overridden'> {
  const current = currentContext(host)
  return current === undefined || current === own ? {} : { overridden: current }
}

const isSame = (a: string, b: string): boolean => new URL(a).origin === new URL(b).origin

/** Chooses the namespace: the option, the environment, the context, or the default, in this order. */
export function chooseNamespace(host: Host, flag: string | undefined, connection: ServerConnection): string {
  const { SVC3_DEFAULT_NAMESPACE, ORKA_DEFAULT_NAMESPACE } = host.env
  const otherwise = connection.namespace || spelledAs(host.calledAs, defaultNamespace)
  return flag || SVC3_DEFAULT_NAMESPACE || ORKA_DEFAULT_NAMESPACE || otherwise
}

/** The folder of the local server's state. */
export function dataDir(host: Host, flag?: string): string {
  const chosen = flag ?? (host.env.SVC3_DATA || undefined)
  if (chosen !== undefined) return path.resolve(host.workingDir, chosen)
  const home = host.isInstalled ? os.homedir() : host.checkout
  return path.join(home, '.svc3')
}

/** The context to use unless the environment names a server. */
function currentContext(host: Host): string | undefined {
  return textField(host.env.SVC3_CONTEXT) ?? textField(readCliConfig(host).config?.currentContext)
}

/** Returns the context of this server, preferably the current one. */
function contextFor(host: Host, apiUrl: string): ServerConnection | undefined {
  const { config } = readCliConfig(host)
  const contexts = fieldsOf(config?.contexts) ?? {}
  const isFor = (name: string): boolean => {
    const known = textField(fieldsOf(contexts[name])?.apiUrl)
    return known !== undefined && URL.canParse(known) && isSame(known, apiUrl)
  }
  const current = currentContext(host)
  const name = current !== undefined && isFor(current) ? current : Object.keys(contexts).find(isFor)
  return name === undefined ? undefined : namedContext(host, name)
}

function contextConnection(host: Host): ServerConnection | undefined {
  const name = currentContext(host)
  return name === undefined ? undefined : namedContext(host, name)
}

function namedContext(host: Host, name: string): ServerConnection {
  const { file, config } = readCliConfig(host)
  const contexts = fieldsOf(config?.contexts) ?? {}
  if (host.env.SVC3_CONTEXT === name && !Object.hasOwn(contexts, name))
    throw unknownContext(name, Object.keys(contexts), file)
  const context = fieldsOf(Object.hasOwn(contexts, name) ? contexts[name] : undefined)
  const apiUrl = textField(context?.apiUrl)
  if (!context || apiUrl === undefined)
    throw new Failure(`Context ${name} in ${file} has no apiUrl`, `Run svc3 config set --context ${name} --api-url URL`)
  const source = `context ${name} in ${file}`
  return {
    apiUrl: checkUrl(apiUrl, source),
    token: textField(context.token),
    tokenExpiresAt: textField(context.tokenExpiresAt),
    renewal: renewalOf(name, context),
    namespace: textField(context.namespace),
    ca: textField(context.ca),
    context: name,
    source,
  }
}

export const unknownContext = (name: string, known: readonly string[], file: string): ApiError => {
  const hint =
    known.length > 0
      ? `Choose one of ${known.join(', ')}`
      : 'Create one with svc3 config set --api-url URL --context NAME'
  return new ApiError('NotFound', `Context ${name} not found in ${file}${didYouMean(name, known)}`, { hint })
}

/** Returns the file and its content; undefined if the file does not exist. */
export function readCliConfig(host: Host): { readonly file: string; readonly config: JsonObject | undefined } {
  const folder = userFolder(host, 'CONFIG')
  const file = `${folder}/config.json`
  return { file, config: folder ? readJson(file) : undefined }
}

function renewalOf(context: string, fields: JsonObject): Renewal | undefined {
  const [refreshToken, issuer, clientId] = [fields.refreshToken, fields.issuer, fields.clientId].map(textField)
  return refreshToken && issuer && clientId ? { context, refreshToken, issuer, clientId } : undefined
}

function localConnection(host: Host): ServerConnection | undefined {
  const { SVC3_DATA } = host.env
  const file = `${dataDir(host, SVC3_DATA || undefined)}/connection.json`
  const note = readJson(file)
  if (!note) return undefined
  const apiUrl = textField(note.apiUrl)
  if (apiUrl === undefined) throw new Failure(`${file} has no apiUrl`, restart(host))
  const pid = typeof note.pid === 'number' ? note.pid : undefined
  const token = textField(note.adminToken)
  return { apiUrl: checkUrl(apiUrl, file), token, localLogin: token && file, source: file, pid }
}

/** Message and hint for a refused connection. */
export function explainRefusal(host: Host, connection: ServerConnection): { message: string; hint: string } {
  const { apiUrl, source, pid, context } = connection
  const message = `No server answers at ${apiUrl}${context === undefined ? '' : ` (context ${context})`}`
  if (pid !== undefined && !processExists(pid))
    return { message: `${message}: process ${pid}, named in ${source}, has ended`, hint: restart(host) }
  if (pid !== undefined) return { message, hint: restart(host) }
  const start = isLoopback(new URL(apiUrl).hostname) ? `, or ${lower(restart(host))}` : ''
  return { message, hint: `Check the address (from ${source})${start}` }
}

/** The server and its context, for messages. */
export const serverOf = ({ apiUrl, context }: ServerConnection): string =>
  context === undefined ? apiUrl : `${apiUrl}, context ${context}`

const restart = ({ isInstalled, checkout }: Host): string =>
  isInstalled ? 'Run svc3 dev' : `Run npm start in ${checkout}`

const lower = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1)

export function checkUrl(text: string, source: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:'
  if (url && isHttp && !url.username && !url.password && !url.search && !url.hash)
    return url.href.replace(/(?<!\/)\/+$/, '')
  // The message does not repeat the address, which may contain a password.
  throw new UsageError(
    `Invalid address in ${source}`,
    'Use the form https://HOST:PORT, for example http://127.0.0.1:8080',
  )
}

function checkToken(token: string | undefined): string | undefined {
  if (token === undefined || /^[\x21-\x7e]+$/.test(token)) return token
  throw new UsageError('Invalid token: it contains spaces or other characters that are not allowed', 'Check SVC3_TOKEN')
}

function readJson(file: string): JsonObject | undefined {
  let text: string
  try {
    text = fs.readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new Failure(`Cannot read ${file} (${code})`, 'Check the permissions of the file')
  }
  const fields = fieldsOf(parseJson(text))
  if (fields) return fields
  // The error of the parser would quote the file, which has tokens.
  throw new Failure(`${file} is not a JSON object`, 'Correct it, or move it away')
}

export const fieldsOf = (value: unknown): JsonObject | undefined => (isObject(value) ? value : undefined)
export const textField = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined
