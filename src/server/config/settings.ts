// The operator's settings with their defaults, read from `config.json` in the data folder.

import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import * as t from 'typebox'
import { defaultNamespace, publicAliases } from '../../rules/names.ts'

const Settings = t.Object(
  {
    limits: t.Object(
      {
        bodyBytes: t.Integer({ minimum: 1_024, maximum: 64 * 1_048_576, default: 1_048_576 }),
        requestsPerMinute: t.Integer({ minimum: 1, default: 60_000, description: 'For each caller' }),
        anonymousPerMinute: t.Integer({
          minimum: 1,
          default: 600,
          description: 'For each address without a good token',
        }),
        headersSeconds: t.Integer({ minimum: 1, default: 10, description: 'For the headers of a request to arrive' }),
        requestSeconds: t.Integer({ minimum: 1, default: 60, description: 'For a whole request to arrive' }),
        uploadSilenceSeconds: t.Integer({ minimum: 1, default: 60, description: 'For the next byte of an upload' }),
        watches: t.Integer({ minimum: 1, default: 2_000, description: 'Open at once' }),
        watchesPerCaller: t.Integer({ minimum: 1, default: 500, description: 'Open at once by one caller' }),
      },
      { additionalProperties: false, default: {} },
    ),
    shutdown: t.Object(
      {
        noticeSeconds: t.Optional(
          t.Number({ minimum: 0, maximum: 300, description: 'Serve on for so long after readiness was withdrawn' }),
        ),
        requestSeconds: t.Optional(
          t.Number({ minimum: 0, maximum: 3_600, description: 'For requests under way to finish after that' }),
        ),
      },
      { additionalProperties: false, default: {} },
    ),
    trustedProxies: t.Array(t.String({ minLength: 2, maxLength: 64 }), {
      default: [],
      description: 'Addresses or networks of proxies whose X-Forwarded-For is believed',
    }),
    compat: t.Object(
      { namespaceAliases: t.Record(t.String(), t.String(), { default: publicAliases }) },
      { additionalProperties: false, default: {} },
    ),
    auth: t.Object(
      {
        issuer: t.Optional(t.String({ description: 'Identity provider; without one, the built-in one' })),
        clientId: t.Optional(t.String({ minLength: 1, description: 'What the provider calls svc3' })),
        emailClaim: t.String({ minLength: 1, default: 'email' }),
        groupsClaim: t.String({ minLength: 1, default: 'groups' }),
        adminGroups: t.Array(t.String({ minLength: 1 }), {
          default: [],
          description: 'Whose members are administrators',
        }),
      },
      { additionalProperties: false, default: {} },
    ),
    console: t.Object(
      {
        enabled: t.Boolean({ default: true, description: 'Serve the web console' }),
        pathPrefix: t.String({
          pattern: '^(/[A-Za-z0-9._~-]+)*$',
          maxLength: 256,
          default: '',
          description: 'What a proxy has before our paths, such as `/svc3`',
        }),
      },
      { additionalProperties: false, default: {} },
    ),
    registries: t.Object(
      {
        allowPrivate: t.Optional(
          t.Boolean({ description: 'Registries may have private addresses; in `svc3 dev` they may anyhow' }),
        ),
        allowLoopback: t.Optional(
          t.Boolean({ description: 'Registries may be on the host itself; in `svc3 dev` they may anyhow' }),
        ),
        ca: t.Record(t.String(), t.String(), {
          default: {},
          description: 'By host and port: a file with the authority that signed the certificate, in PEM',
        }),
      },
      { additionalProperties: false, default: {} },
    ),
    legacy: t.Object(
      {
        enabled: t.Optional(t.Boolean({ description: 'Answer paths of 2.4.x; `svc3 dev` does when it is left out' })),
        namespace: t.String({ minLength: 1, maxLength: 63, default: defaultNamespace, description: 'Where they work' }),
        sunset: t.String({
          pattern: '^20\\d\\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])$',
          default: '2027-11-15',
          description: 'Until when, as their answers say',
        }),
      },
      { additionalProperties: false, default: {} },
    ),
    remotes: t.Array(
      t.Object(
        {
          name: t.String({ pattern: '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$' }),
          url: t.String({ maxLength: 2_048, description: 'A folder with an index.json, or oci:// and a repository' }),
          allowInsecure: t.Boolean({ default: false, description: 'Plain HTTP will do' }),
          caFile: t.Optional(t.String({ minLength: 1, description: 'PEM; trusted for this remote, too' })),
        },
        { additionalProperties: false },
      ),
      { default: [], maxItems: 100, description: 'Where images and ISOs can be pulled from' },
    ),
    images: t.Object(
      {
        address: t.Optional(
          t.String({ maxLength: 512, description: 'Keep images in a registry: oci://REGISTRY/PREFIX, as --images' }),
        ),
        username: t.Optional(t.String({ minLength: 1, maxLength: 256, description: 'Who we are to it' })),
        passwordFile: t.Optional(t.String({ minLength: 1, description: 'File with the password for it' })),
        caFile: t.Optional(t.String({ minLength: 1, description: 'PEM; trusted for it, beside the usual ones' })),
        cacheBytes: t.Integer({
          minimum: 64 * 1_048_576,
          default: 10 * 2 ** 30,
          description: 'What a server keeps of it on its own disk',
        }),
      },
      { additionalProperties: false, default: {} },
    ),
    logLevel: t.Enum(['debug', 'info', 'warn', 'error', 'silent'], { default: 'info' }),
  },
  { additionalProperties: false },
)
export type Settings = t.Static<typeof Settings>

export class SettingsError extends Error {
  override readonly name = 'SettingsError'
}

let check: ValidateFunction<Settings> | undefined

/** `text` is the content of the file, or nothing; `where` names it in the error. */
export function parseSettings(text: string | undefined, where = 'config.json'): Settings {
  const value: unknown = parseJson(text ?? '{}', where)
  // Our own schema is not validated against the meta-schema: that would be most of the work.
  check ??= new Ajv({ allErrors: true, useDefaults: true, validateSchema: false }).compile<Settings>(Settings)
  const problems = check(value)
    ? [...authProblems(value.auth), ...remoteProblems(value.remotes)]
    : (check.errors ?? []).map(problemOf)
  if (problems.length === 0) return value as Settings
  throw new SettingsError(`${where} cannot be used: ${problems.join('; ')}`)
}

function problemOf({ instancePath, message, params }: ErrorObject): string {
  const place = instancePath.slice(1).replaceAll('/', '.') || 'it'
  const { additionalProperty, allowedValues } = params
  if (additionalProperty !== undefined) return `${place} has no setting "${additionalProperty}"`
  return `${place} ${message}${allowedValues === undefined ? '' : `: ${allowedValues.join(', ')}`}`
}

const loopback = new Set(['127.0.0.1', '[::1]', 'localhost'])

/** A provider that is reached without TLS could be anybody; on this machine it cannot. */
function authProblems({ issuer, clientId }: Settings['auth']): string[] {
  if (issuer === undefined) return clientId === undefined ? [] : ['auth.clientId is of no use without auth.issuer']
  const url = URL.canParse(issuer) ? new URL(issuer) : undefined
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && loopback.has(url.hostname))
  return [
    ...(url && isSafe && !url.search && !url.hash && !url.username
      ? []
      : ['auth.issuer must be an https:// address without query']),
    ...(clientId === undefined ? ['auth.clientId is missing: what the provider at auth.issuer calls svc3'] : []),
  ]
}

function remoteProblems(remotes: Settings['remotes']): string[] {
  return remotes.flatMap(({ name, url, allowInsecure }, index) => {
    const place = URL.canParse(url) ? new URL(url) : undefined
    const isPlain = place?.protocol === 'http:'
    const isKnown = isPlain || place?.protocol === 'https:' || (place?.protocol === 'oci:' && place.pathname.length > 1)
    const isFolder = isKnown && !place.search && !place.hash && !place.username
    return [
      ...(isFolder ? [] : [`remotes.${index}.url must be an https:// or oci:// address without user and query`]),
      ...(isPlain && !allowInsecure ? [`remotes.${index}.url is plain http, which needs "allowInsecure": true`] : []),
      ...(remotes.findIndex((each) => each.name === name) === index ? [] : [`remotes has "${name}" twice`]),
    ]
  })
}

function parseJson(text: string, where: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new SettingsError(`${where} is not JSON: ${(error as Error).message}`)
  }
}
