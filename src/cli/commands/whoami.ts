// svc3 whoami: the user, the server and the context that commands work with. The service checks the token; what the
// token says is then true.

import { listNamespaces } from '../../api/access/namespaces.ts'
import { connected, defineCommand, printed } from '../command.ts'
import { claimsOf } from '../connect/claims.ts'
import { chooseNamespace } from '../connect/connection.ts'
import { visible } from '../output/output.ts'

interface Shown {
  readonly user: string
  readonly kind: string
  readonly role: 'administrator' | 'developer' | 'none'
  readonly server: string
  readonly context: string | null
  /** Where commands work without -n. */
  readonly namespace: string
  readonly namespaces: readonly string[]
  readonly tokenExpiresAt: string | null
}

export const command = defineCommand({
  description: 'Shows your user, server, context, namespaces and when the token expires.',
  arguments: {},
  options: { ...connected, ...printed },
  examples: [
    { line: 'svc3 whoami', does: 'Check which server and user the next command uses' },
    { line: 'svc3 whoami -o json', does: 'The same for a program' },
  ],
  async run(context) {
    const { host, signal, format } = context
    const connection = await context.connection()
    const { client } = await context.connect()
    const namespaces = (await client.listAll(listNamespaces, { signal })).map(({ name }) => name)
    const claims = claimsOf(connection.token ?? '')
    const isAccount = claims?.kind === 'serviceaccount'
    const shown: Shown = {
      user: isAccount ? `serviceaccount:${claims?.namespace}:${claims?.name}` : (claims?.name ?? 'unknown'),
      kind: claims?.kind ?? 'unknown',
      role: claims?.admin ? 'administrator' : namespaces.length > 0 ? 'developer' : 'none',
      server: connection.apiUrl,
      context: connection.context ?? null,
      namespace: chooseNamespace(host, undefined, connection),
      namespaces,
      tokenExpiresAt: claims?.expiresAt ?? null,
    }
    if (format === 'json' || format === 'yaml') await context.print([shown], [], '')
    else host.stdout.write(linesOf(shown, host.now()))
    return 0
  },
})

const roles: Readonly<Record<Shown['role'], string>> = {
  administrator: 'administrator of the cluster',
  developer: 'developer',
  none: 'none (ask an administrator for access to a namespace)',
}

function linesOf(shown: Shown, now: Date): string {
  const rows: readonly (readonly [string, string])[] = [
    ['User', shown.user],
    ['Role', roles[shown.role]],
    ['Server', shown.server],
    ['Context', shown.context ?? 'none'],
    ['Namespace', shown.namespace],
    ['Namespaces', shown.namespaces.join(', ') || 'none'],
    ['Token', shown.tokenExpiresAt === null ? 'does not expire' : `expires ${left(shown.tokenExpiresAt, now)}`],
  ]
  return rows.map(([name, value]) => `${`${name}:`.padEnd(12)}${visible(value)}\n`).join('')
}

const units = [
  [86_400, 'days'],
  [3_600, 'h'],
  [60, 'min'],
] as const

/** "in 52 min (2026-11-16T10:00:00Z)". */
function left(time: string, now: Date): string {
  const seconds = Math.max(0, (Date.parse(time) - now.getTime()) / 1_000)
  const [size, unit] = units.find(([each]) => seconds >= each * 2) ?? [1, 's']
  return `in ${Math.floor(seconds / size)} ${unit} (${time})`
}
