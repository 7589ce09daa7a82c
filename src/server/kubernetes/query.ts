// Query parameters of Kubernetes clients.
import type { FastifyRequest } from 'fastify'
import { badRequest, invalidField } from '../../api/errors.ts'

export type KubeQuery = Readonly<ReturnType<typeof readQuery>>

export function readQuery(request: FastifyRequest) {
  const all = (request.query ?? {}) as Readonly<Record<string, string | readonly string[] | undefined>>
  const text = (name: string): string | undefined => {
    const value = all[name]
    const one = typeof value === 'string' ? value : value?.[0]
    return one === '' ? undefined : one
  }
  const version = text('resourceVersion')
  return {
    isWatch: flag(text('watch'), 'watch') ?? false,
    limit: whole(text('limit'), 'limit'),
    continue: text('continue'),
    labelSelector: text('labelSelector'),
    fieldSelector: text('fieldSelector'),
    /** Undefined for 0, which accepts any version. */
    resourceVersion: version === '0' ? undefined : version,
    resourceVersionMatch: oneOf(text('resourceVersionMatch'), 'resourceVersionMatch', ['Exact', 'NotOlderThan']),
    allowsBookmarks: flag(text('allowWatchBookmarks'), 'allowWatchBookmarks') ?? false,
    sendInitialEvents: flag(text('sendInitialEvents'), 'sendInitialEvents'),
    timeoutSeconds: whole(text('timeoutSeconds'), 'timeoutSeconds'),
    includeObject: oneOf(text('includeObject'), 'includeObject', ['None', 'Metadata', 'Object']) ?? 'Metadata',
    isDryRun: oneOf(text('dryRun'), 'dryRun', ['All']) === 'All',
    fieldValidation: oneOf(text('fieldValidation'), 'fieldValidation', ['Ignore', 'Warn', 'Strict']) ?? 'Warn',
    fieldManager: managerName(text('fieldManager')),
    isForced: flag(text('force'), 'force') ?? false,
    /** For logs: keep the connection open for new lines. */
    isFollowed: flag(text('follow'), 'follow') ?? false,
    /** For logs: how many of the existing lines. */
    tailLines: text('tailLines') === '0' ? 0 : whole(text('tailLines'), 'tailLines'),
    propagationPolicy: text('propagationPolicy'),
  }
}

/** The limits are those of Kubernetes. */
function managerName(text: string | undefined): string | undefined {
  if (text === undefined || /^[\x21-\x7e][\x20-\x7e]{0,127}$/.test(text)) return text
  throw wrong('fieldManager', 'must have at most 128 printable characters')
}

const flags: Readonly<Record<string, boolean>> = { true: true, '1': true, false: false, '0': false }

function flag(text: string | undefined, field: string): boolean | undefined {
  if (text === undefined) return undefined
  if (Object.hasOwn(flags, text)) return flags[text]
  throw wrong(field, 'must be true or false')
}

/** Returns undefined for 0, which means no limit. */
function whole(text: string | undefined, field: string): number | undefined {
  if (text === undefined) return undefined
  if (!/^\d{1,9}$/.test(text)) throw wrong(field, 'must be a whole number')
  return Number(text) || undefined
}

function oneOf<const T extends string>(text: string | undefined, field: string, known: readonly T[]): T | undefined {
  if (text === undefined) return undefined
  const found = known.find((each) => each === text)
  if (found === undefined) throw wrong(field, `must be one of ${known.join(', ')}`)
  return found
}

const wrong = (field: string, must: string) => badRequest([invalidField(field, `${field} ${must}`)])
