// Which service to call, and with which token: --context > environment > config file > the local server's connection
// file.

import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { ApiError } from '../../api/errors.ts'
import type { Host } from '../host.ts'
import { didYouMean } from '../line/suggest.ts'
import { Failure, UsageError } from '../line/usage.ts'

export interface Connection {
  readonly apiUrl: string
  readonly token?: string | undefined
  readonly tokenExpiresAt?: string | undefined
  /** Gets a new token from the provider that gave it, when this one has run out. */
  readonly renewal?: Renewal | undefined
  /** The namespace of the configured context. */
  readonly namespace?: string | undefined
  /** File of the authorities that may vouch for the server, in place of those that the system trusts. */
  readonly ca?: string | undefined
  /** The configured context that it comes from. */
  readonly context?: string | undefined
  /** Where this was found, for messages. */
  readonly source: string
  /** The local server that wrote it. */
  readonly pid?: number | undefined
}

interface Renewal {
  /** Of the configuration file. */
  readonly context: string
  readonly refreshToken: string
  readonly issuer: string
  readonly clientId: string
}

type Fields = Readonly<Record<string, unknown>>

export function findConnection(host: Host): Connection {
  const { SVC3_API_URL, SVC3_TOKEN } = host.env
  const token = SVC3_TOKEN?.trim() || undefined
  const asked = SVC3_API_URL ? checkUrl(SVC3_API_URL, 'SVC3_API_URL') : undefined
  const stored = readStored(host, asked, asked !== undefined && token !== undefined)
  if (SVC3_API_URL) {
    const apiUrl = checkUrl(SVC3_API_URL, 'SVC3_API_URL')
    // A token goes only where it was meant to go.
    const own = stored && isSame(stored.apiUrl, apiUrl) ? stored : undefined
    const named = { apiUrl, namespace: stored?.namespace, ca: own?.ca, context: own?.context, source: 'SVC3_API_URL' }
    return token ? { ...named, token: checkToken(token) } : { ...named, ...credentialsOf(own) }
  }
  if (!stored) {
    throw new Failure(
      `no svc3 server is known: none runs ${host.isInstalled ? 'here' : 'from this checkout'}, and none is configured`,
      host.isInstalled
        ? `name one: ${host.calledAs} config set --api-url URL`
        : `${restart(host)}, or set SVC3_API_URL (and SVC3_TOKEN)`,
    )
  }
  if (!token) return { ...stored, ...credentialsOf(stored) }
  const { tokenExpiresAt: _, renewal: __, ...rest } = stored
  return { ...rest, token: checkToken(token) }
}

const isSame = (a: string, b: string): boolean => new URL(a).origin === new URL(b).origin

const credentialsOf = (stored: Connection | undefined): Partial<Connection> => ({
  token: checkToken(stored?.token),
  tokenExpiresAt: stored?.tokenExpiresAt,
  renewal: stored?.renewal,
})

/** The context of that server, otherwise the current one, otherwise the local server. */
function storedConnection(host: Host, apiUrl: string | undefined): Connection | undefined {
  const context = contextConnection(host, apiUrl)
  if (context?.token !== undefined) return context
  const local = localConnection(host)
  if (!context) return local
  // Who is logged out of the local server is what they were before they logged in.
  return local && isSame(local.apiUrl, context.apiUrl)
    ? { ...local, namespace: context.namespace, ca: context.ca, context: context.context }
    : context
}

/** A broken file is a failure only where something in it is needed. */
function readStored(host: Host, apiUrl: string | undefined, isOptional: boolean): Connection | undefined {
  try {
    return storedConnection(host, apiUrl)
  } catch (error) {
    if (isOptional) return undefined
    throw error
  }
}

/** The namespace of a command: flag > environment > context > the default. */
export function chooseNamespace(host: Host, flag: string | undefined, connection: Connection): string {
  const { SVC3_DEFAULT_NAMESPACE, ORKA_DEFAULT_NAMESPACE } = host.env
  return flag || SVC3_DEFAULT_NAMESPACE || ORKA_DEFAULT_NAMESPACE || connection.namespace || 'svc-default'
}

/** The folder of the local server's state. */
export function dataDir(host: Host, flag?: string): string {
  const chosen = flag ?? (host.env.SVC3_DATA || undefined)
  if (chosen !== undefined) return path.resolve(host.workingDir, chosen)
  const home = host.isInstalled ? os.homedir() : host.checkout
  return path.join(home, '.svc3')
}

function contextConnection(host: Host, apiUrlWanted: string | undefined): Connection | undefined {
  const { file, config } = readConfig(host)
  const contexts = fieldsOf(config?.contexts) ?? {}
  const asked = apiUrlWanted === undefined ? textOf(host.env.SVC3_CONTEXT) : undefined
  if (asked !== undefined && !Object.hasOwn(contexts, asked)) throw unknownContext(asked, Object.keys(contexts), file)
  const name = asked ?? contextOf(contexts, apiUrlWanted) ?? textOf(config?.currentContext)
  if (!config || name === undefined) return undefined
  const context = fieldsOf(Object.hasOwn(contexts, name) ? contexts[name] : undefined)
  const apiUrl = textOf(context?.apiUrl)
  if (!context || apiUrl === undefined) {
    throw new Failure(
      `${file} names the context "${name}" but gives no apiUrl for it`,
      `add it under "contexts" in ${file}`,
    )
  }
  const source = `context "${name}" of ${file}`
  return {
    apiUrl: checkUrl(apiUrl, source),
    token: textOf(context.token),
    tokenExpiresAt: textOf(context.tokenExpiresAt),
    renewal: renewalOf(name, context),
    namespace: textOf(context.namespace),
    ca: textOf(context.ca),
    context: name,
    source,
  }
}

export const unknownContext = (name: string, known: readonly string[], file: string): ApiError => {
  const hint =
    known.length > 0 ? `there are ${known.join(', ')}` : '"config set --api-url URL --context NAME" makes one'
  return new ApiError('NotFound', `context "${name}" not found in ${file}${didYouMean(name, known)}`, { hint })
}

/** What is configured, and where; nothing, where there is no such file or no place for one. */
export function readConfig({ env }: Host): { readonly file: string; readonly config: Fields | undefined } {
  const folder = env.XDG_CONFIG_HOME || (env.HOME && `${env.HOME}/.config`)
  const file = `${folder}/svc3/config.json`
  return { file, config: folder ? readJson(file) : undefined }
}

/** The name of a context for that server. */
function contextOf(contexts: Fields, apiUrl: string | undefined): string | undefined {
  if (apiUrl === undefined) return undefined
  return Object.keys(contexts).find((name) => {
    const known = textOf(fieldsOf(contexts[name])?.apiUrl)
    return known !== undefined && URL.canParse(known) && isSame(known, apiUrl)
  })
}

function renewalOf(context: string, fields: Fields): Renewal | undefined {
  const [refreshToken, issuer, clientId] = [fields.refreshToken, fields.issuer, fields.clientId].map(textOf)
  return refreshToken && issuer && clientId ? { context, refreshToken, issuer, clientId } : undefined
}

function localConnection(host: Host): Connection | undefined {
  const { SVC3_DATA } = host.env
  const file = `${dataDir(host, SVC3_DATA || undefined)}/connection.json`
  const note = readJson(file)
  if (!note) return undefined
  const apiUrl = textOf(note.apiUrl)
  if (apiUrl === undefined) throw new Failure(`${file} has no apiUrl`, restart(host))
  const pid = typeof note.pid === 'number' ? note.pid : undefined
  return { apiUrl: checkUrl(apiUrl, file), token: textOf(note.adminToken), source: file, pid }
}

/** What to say when nothing listens at the address of a connection. */
export function explainRefusal(host: Host, connection: Connection): { message: string; hint: string } {
  const { apiUrl, source, pid } = connection
  if (pid !== undefined && !isAlive(pid)) {
    return {
      message: `no server answers at ${apiUrl}: the one named in ${source} (process ${pid}) has ended`,
      hint: restart(host),
    }
  }
  const hint = pid === undefined ? `${restart(host)}, or correct the address (from ${source})` : restart(host)
  return { message: `no server answers at ${apiUrl}`, hint }
}

const restart = ({ isInstalled, calledAs, checkout }: Host): string =>
  isInstalled ? `run "${calledAs} dev"` : `run "npm start" in ${checkout}`

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

export function checkUrl(text: string, source: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isHttp = url?.protocol === 'http:' || url?.protocol === 'https:'
  if (url && isHttp && !url.username && !url.password && !url.search && !url.hash) return url.href.replace(/\/+$/, '')
  // Not repeated: it may carry a password.
  throw new UsageError(
    `the address in ${source} is not of the form http://HOST:PORT`,
    'for example http://127.0.0.1:8080',
  )
}

function checkToken(token: string | undefined): string | undefined {
  if (token === undefined || /^[\x21-\x7e]+$/.test(token)) return token
  throw new UsageError('the token contains blanks or characters that no token has', 'check SVC3_TOKEN')
}

function readJson(file: string): Fields | undefined {
  let text: string
  try {
    text = fs.readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new Failure(`cannot read ${file} (${code})`, 'check who may read it')
  }
  try {
    const fields = fieldsOf(JSON.parse(text))
    if (fields) return fields
  } catch {
    // Reported below: a parser's message would quote the file, and with it a token.
  }
  throw new Failure(`${file} is not a JSON object`, 'correct it, or move it away')
}

export const fieldsOf = (value: unknown): Fields | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined
export const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined
