// svc3 whoami: shows the user, server and context that commands use. Reads the claims of the token after the service has
// accepted it.

import { listNamespaces } from '../../api/access/namespaces.ts'
import { listServiceAccounts } from '../../api/access/service-accounts.ts'
import { timeLeft } from '../../rules/durations.ts'
import { connected, defineCommand, printed } from '../command.ts'
import { claimsOf, subjectOf } from '../connect/claims.ts'
import { chooseNamespace } from '../connect/connection.ts'
import type { Field } from '../output/record.ts'
import { printRecord } from '../record-commands.ts'

interface WhoamiView {
  readonly user: string
  readonly kind: string
  readonly role: 'administrator' | 'developer' | 'none'
  readonly server: string
  readonly context: string | null
  /** The default namespace of commands. */
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
    const { host, signal } = context
    const connection = await context.connection()
    const { client } = await context.connect()
    const namespaces = (await client.listAll(listNamespaces, { signal })).map(({ name }) => name)
    const claims = claimsOf(connection.token ?? '')
    // The token of a service account does not name its role, which may change. Only administrators may list accounts.
    const input = { params: { namespace: claims?.namespace ?? '' }, query: { limit: 1 }, signal }
    const accounts = claims?.namespace && (await client.call(listServiceAccounts, input).catch(() => undefined))
    const shown: WhoamiView = {
      user: (claims && subjectOf(claims)) ?? 'unknown',
      kind: claims?.kind ?? 'unknown',
      role: claims?.admin || accounts ? 'administrator' : namespaces.length > 0 ? 'developer' : 'none',
      server: connection.apiUrl,
      context: connection.context ?? null,
      namespace: chooseNamespace(host, undefined, connection),
      namespaces,
      tokenExpiresAt: claims?.expiresAt ?? null,
    }
    return printRecord(context, shown, fieldsAt(host.now()))
  },
})

const roles: Readonly<Record<WhoamiView['role'], string>> = {
  administrator: 'administrator of the cluster',
  developer: 'developer',
  none: 'none (ask an administrator for access to a namespace)',
}

const fieldsAt = (now: Date): readonly Field<WhoamiView>[] => [
  { label: 'User', value: ({ user }) => user },
  { label: 'Role', value: ({ role }) => roles[role] },
  { label: 'Server', value: ({ server }) => server },
  { label: 'Context', value: ({ context }) => context ?? 'none' },
  { label: 'Namespace', value: ({ namespace }) => namespace },
  { label: 'Namespaces', value: ({ namespaces }) => namespaces.join(', ') || 'none' },
  { label: 'Token', value: ({ kind, tokenExpiresAt: at }) => expiryText(kind, at, now) },
]

/** "expires in 52 min (2026-11-16T10:00:00Z)". */
function expiryText(kind: string, at: string | null, now: Date): string {
  if (at === null) return kind === 'unknown' ? 'expiry unknown' : 'does not expire'
  return `expires in ${timeLeft(Math.max(0, (Date.parse(at) - now.getTime()) / 1_000))} (${at})`
}
