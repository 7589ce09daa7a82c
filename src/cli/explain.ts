// Adds a hint to a refusal: the name that was probably meant, or that client and server versions do not match. Has a
// short timeout, after which the refusal is shown without a hint.
import { ApiError } from '../api/errors.ts'
import { allNouns, isListed } from '../api/nouns.ts'
import { getClusterInfo } from '../api/service/service.ts'
import { versionAdvice } from '../rules/versions.ts'
import { findConnection } from './connect/connection.ts'
import { liveNames } from './connect/names.ts'
import { openClient } from './connect/session.ts'
import type { Host } from './host.ts'
import { nearestName } from './line/suggest.ts'

export const explainTimeoutMs = 700

interface ExplainRequest {
  readonly host: Host
  readonly namespace: string | undefined
}

/** Returns the error, with a better hint if there is one. */
export async function explain(error: unknown, request: ExplainRequest): Promise<unknown> {
  if (!(error instanceof ApiError)) return error
  const isMissing = error.reason === 'NotFound' && error.options.kind !== undefined
  // Errors of the service have a request ID. An error of this program can only be about a name that a list lacks.
  if (error.requestId === undefined && (!isMissing || error.options.hint?.startsWith('Did you mean'))) return error
  const more = await (isMissing && error.options.kind
    ? nearName(error.options.kind, error.options.name, request)
    : maybeVersion.has(error.reason)
      ? versionMismatch(request)
      : undefined)
  if (more === undefined) return error
  const { hint } = error.options
  return new ApiError(error.reason, error.message, { ...error.options, hint: more(hint) }, error.requestId)
}

type More = (hint: string | undefined) => string

/** Reasons that a client or server of another version may cause. */
const maybeVersion: ReadonlySet<string> = new Set([
  'NotFound',
  'BadRequest',
  'MethodNotAllowed',
  'UnsupportedMediaType',
])

async function nearName(
  kind: string,
  name: string | undefined,
  { host, namespace }: ExplainRequest,
): Promise<More | undefined> {
  const known = allNouns.find(([, { wire }]) => wire === kind)?.[0]
  if (known === undefined || !isListed(known) || name === undefined) return undefined
  const names = await liveNames(host, { kind: known, namespace, timeoutMs: explainTimeoutMs }).catch(() => [])
  const near = nearestName(name, names)
  return near === undefined ? undefined : (hint) => `Did you mean ${near}?${hint ? ` ${hint}` : ''}`
}

async function versionMismatch({ host }: ExplainRequest): Promise<More | undefined> {
  try {
    const client = openClient(host, findConnection(host), { timeoutMs: explainTimeoutMs, attempts: 1 })
    const { version } = await client.call(getClusterInfo, { signal: AbortSignal.timeout(explainTimeoutMs) })
    const advice = versionAdvice(host.version, version)
    return advice === undefined ? undefined : () => advice
  } catch {
    return undefined
  }
}
