// The operator's settings with their defaults, read from `config.json` in the data folder.

import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import * as t from 'typebox'
import { isLoopback } from '../../rules/addresses.ts'
import { defaultNamespace, publicAliases } from '../../rules/names.ts'

const section = <const P extends t.TProperties>(properties: P) =>
  t.Object(properties, { additionalProperties: false, default: {} })
const positive = (preset: number, description: string) => t.Integer({ minimum: 1, default: preset, description })
const text = (preset: string, description: string) => t.String({ minLength: 1, default: preset, description })
const optionalText = (description: string, maxLength?: number) =>
  t.Optional(t.String({ minLength: 1, ...(maxLength !== undefined && { maxLength }), description }))

export const settingsSchema = t.Object(
  {
    limits: section({
      bodyBytes: t.Integer({
        minimum: 1_024,
        maximum: 64 * 1_048_576,
        default: 1_048_576,
        description: 'Largest request body, in bytes',
      }),
      requestsPerMinute: positive(
        60_000,
        'Requests per caller with a valid token; all tokens of a caller count together',
      ),
      anonymousPerMinute: positive(
        600,
        'Requests per address without a token that this server has verified; files of the console and Swagger count a tenth',
      ),
      headersSeconds: positive(10, 'Time for the headers to arrive'),
      requestSeconds: positive(60, 'Time for a whole request to arrive'),
      uploadSilenceSeconds: positive(60, 'Longest pause between two bytes of an image or ISO upload'),
      watches: positive(2_000, 'Open watches in total'),
      watchesPerCaller: positive(500, 'Open watches per caller'),
    }),
    shutdown: section({
      noticeSeconds: t.Optional(
        t.Number({
          minimum: 0,
          maximum: 300,
          description:
            'Time between failing `/readyz` and refusing connections, for load balancers. Default: 5 with `--store`, otherwise 0',
        }),
      ),
      requestSeconds: t.Optional(
        t.Number({
          minimum: 0,
          maximum: 3_600,
          description: 'Time for open requests to finish after that. Default: 60 with `--store`, otherwise 10',
        }),
      ),
    }),
    trustedProxies: t.Array(t.String({ minLength: 2, maxLength: 64 }), {
      default: [],
      description:
        'Addresses or networks of proxies whose `X-Forwarded-For` is trusted. With `--plain-http --url`, this machine is trusted too',
    }),
    compat: section({
      namespaceAliases: t.Record(t.String(), t.String(), {
        default: publicAliases,
        description: 'Namespace prefixes that stand for another prefix. Replaces the default',
      }),
    }),
    auth: section({
      issuer: t.Optional(
        t.String({
          description:
            'OpenID Connect issuer, https, exactly as in its discovery document. Without it, the built-in provider is used',
        }),
      ),
      clientId: optionalText('Client ID of svc3 at that provider; required with `auth.issuer`'),
      emailClaim: text('email', 'Claim with the email address, in the ID token or userinfo'),
      groupsClaim: text('groups', 'Claim with the groups, in the ID token or userinfo'),
      adminGroups: t.Array(t.String({ minLength: 1 }), {
        default: [],
        description: 'Groups whose members are administrators',
      }),
    }),
    console: section({
      enabled: t.Boolean({ default: true, description: 'Serve the web console at `/console`' }),
      pathPrefix: t.String({
        pattern: '^(/[A-Za-z0-9._~-]+)*$',
        maxLength: 256,
        default: '',
        description: 'Path prefix that a proxy adds, such as `/svc3`',
      }),
    }),
    registries: section({
      allowPrivate: t.Optional(
        t.Boolean({
          description: 'Allow registries with private addresses. Default: `true` in `svc3 dev`, otherwise `false`',
        }),
      ),
      allowLoopback: t.Optional(
        t.Boolean({
          description: 'Allow registries on the hosts themselves. Default: `true` in `svc3 dev`, otherwise `false`',
        }),
      ),
      ca: t.Record(t.String(), t.String(), {
        default: {},
        description: 'PEM file of the CA to trust for a registry: `{"registry.rack:5000": "/etc/svc3/rack-ca.pem"}`',
      }),
    }),
    legacy: section({
      enabled: t.Optional(
        t.Boolean({
          description:
            'Answer the paths of the Orka 2.4.x API; off, they answer 410. Default: `true` in `svc3 dev`, otherwise `false`',
        }),
      ),
      namespace: t.String({
        minLength: 1,
        maxLength: 63,
        default: defaultNamespace,
        description: 'Namespace in which the 2.4.x API works',
      }),
      sunset: t.String({
        pattern: '^20\\d\\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])$',
        default: '2027-11-15',
        description: 'Date in the `Sunset` header of its answers; nothing happens on that day',
      }),
    }),
    remotes: t.Array(
      t.Object(
        {
          name: t.String({
            pattern: '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$',
            description: 'Lowercase letters, digits and dashes. `NAME/ITEM` names an item of this remote',
          }),
          url: t.String({
            maxLength: 2_048,
            description: 'Folder of a web server with an `index.json`, or `oci://HOST/REPOSITORY`',
          }),
          allowInsecure: t.Boolean({ default: false, description: 'Allow plain HTTP' }),
          caFile: optionalText('PEM file of a CA to trust for this remote; relative to the data folder'),
        },
        { additionalProperties: false },
      ),
      { default: [], maxItems: 100, description: 'Where `svc3 remote-image` and `svc3 remote-iso` pull from' },
    ),
    images: section({
      start: t.Enum(['whole', 'lazy'], {
        default: 'whole',
        description:
          'What deployments do that do not say: wait for the `whole` image, or start on what has arrived of it (`lazy`)',
      }),
      address: t.Optional(
        t.String({
          maxLength: 512,
          description: 'Registry that keeps the images, as with `--images`: `oci://REGISTRY/PREFIX`',
        }),
      ),
      username: optionalText('User name for that registry', 256),
      passwordFile: optionalText('File with the password for that registry'),
      caFile: optionalText('PEM file of a CA to trust for that registry'),
      cacheBytes: t.Integer({
        minimum: 64 * 1_048_576,
        default: 10 * 2 ** 30,
        description: 'Disk space for the local cache of that registry, in bytes',
      }),
    }),
    metrics: section({
      host: optionalText('Address on which `/metrics`, and nothing else, is served without a token. Default: none'),
      port: t.Integer({ minimum: 1, maximum: 65_535, default: 9_464, description: 'Port of `metrics.host`' }),
    }),
    logLevel: t.Enum(['debug', 'info', 'warn', 'error', 'silent'], {
      default: 'info',
      description: 'Lowest level to log',
    }),
  },
  { additionalProperties: false },
)
export type Settings = t.Static<typeof settingsSchema>

export class SettingsError extends Error {
  override readonly name = 'SettingsError'
}

let check: ValidateFunction<Settings> | undefined

/** `text` is the content of the file, if any; `where` names the file in errors. */
export function parseSettings(text: string | undefined, where = 'config.json'): Settings {
  const value: unknown = parseJson(text ?? '{}', where)
  // Checking our own schema against the meta-schema would take most of the time.
  check ??= new Ajv({ allErrors: true, useDefaults: true, validateSchema: false }).compile<Settings>(settingsSchema)
  const problems = check(value)
    ? [...authProblems(value.auth), ...remoteProblems(value.remotes)]
    : (check.errors ?? []).map(problemOf)
  if (problems.length === 0) return value as Settings
  throw new SettingsError(`Invalid ${where}: ${problems.join('; ')}`)
}

function problemOf({ instancePath, message, params }: ErrorObject): string {
  const place = instancePath.slice(1).replaceAll('/', '.') || 'it'
  const { additionalProperty, allowedValues } = params
  if (additionalProperty !== undefined)
    return `Unknown setting "${place === 'it' ? '' : `${place}.`}${additionalProperty}"`
  return `${place} ${message}${allowedValues === undefined ? '' : `: ${allowedValues.join(', ')}`}`
}

/** Without TLS, another server could pretend to be the provider, except on this machine. */
function authProblems({ issuer, clientId }: Settings['auth']): string[] {
  if (issuer === undefined) return clientId === undefined ? [] : ['auth.clientId requires auth.issuer']
  const url = URL.canParse(issuer) ? new URL(issuer) : undefined
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname))
  return [
    ...(url && isSafe && !url.search && !url.hash && !url.username
      ? []
      : ['auth.issuer must be an https:// address without a query']),
    ...(clientId === undefined ? ['auth.clientId is required with auth.issuer'] : []),
  ]
}

function remoteProblems(remotes: Settings['remotes']): string[] {
  return remotes.flatMap(({ name, url, allowInsecure }, index) => {
    const place = URL.canParse(url) ? new URL(url) : undefined
    const isPlain = place?.protocol === 'http:'
    const isKnown = isPlain || place?.protocol === 'https:' || (place?.protocol === 'oci:' && place.pathname.length > 1)
    const isFolder = isKnown && !place.search && !place.hash && !place.username
    return [
      ...(isFolder ? [] : [`remotes.${index}.url must be an https:// or oci:// address without user name and query`]),
      ...(isPlain && !allowInsecure ? [`remotes.${index}.url uses plain HTTP: set "allowInsecure": true`] : []),
      ...(remotes.findIndex((each) => each.name === name) === index ? [] : [`Duplicate remote "${name}"`]),
    ]
  })
}

function parseJson(text: string, where: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new SettingsError(`Invalid JSON in ${where}: ${(error as Error).message}`)
  }
}
