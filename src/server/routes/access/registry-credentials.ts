// Handlers of registry credentials (docs/spec.md R15–R20). A password is encrypted and never returned.
import type * as api from '../../../api/access/registry-credentials.ts'
import type { RegistryCredential, RegistryCredentialInput } from '../../../api/access/registry-credentials.ts'
import {
  ApiError,
  alreadyExists,
  type Cause,
  conflict,
  invalid,
  invalidField,
  notFound,
  success,
} from '../../../api/errors.ts'
import { displayName } from '../../../auth/principal.ts'
import { SealError } from '../../../auth/seal.ts'
import type { Secrets } from '../../../auth/secrets.ts'
import { timestamp } from '../../../platform/clock.ts'
import { parseRegistryServer } from '../../../rules/registry-server.ts'
import { hasExpired } from '../../../rules/retention.ts'
import type { Collections, RegistryCredentialRecord } from '../../../store/records/collections.ts'
import type { Entry } from '../../../store/store.ts'
import { writeInside } from '../../gate/namespace.ts'
import { Answer } from '../../http/answer.ts'
import { listing } from '../../lists/listing.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import { credentialKey, registryIn } from '../../remotes/registries.ts'

const kind = 'registrycredentials'

interface CredentialServices {
  readonly collections: Collections
  readonly secrets: Secrets
}

export function registryCredentials(services: CredentialServices): HandlersOf<typeof api> {
  const { collections, secrets } = services
  const credentials = collections.registryCredentials

  const viewOf = (entry: Entry<RegistryCredentialRecord>): RegistryCredential => {
    const { server, username, allowInsecure, createdAt, updatedAt, updatedBy } = entry.value
    const common = { username, allowInsecure, createdAt, updatedAt, updatedBy }
    return { server, name: registryIn(entry.key), ...common, resourceVersion: entry.rev }
  }

  /** Refuses a record that was altered outside the service, which would otherwise look valid. */
  const checkedView = (entry: Entry<RegistryCredentialRecord>): RegistryCredential => {
    try {
      secrets.open(entry.key, entry.value)
    } catch (error) {
      if (error instanceof SealError) throw altered(`https://${registryIn(entry.key)}`, error)
      throw error
    }
    return viewOf(entry)
  }

  return {
    listRegistryCredentials: ({ params }) => listing(credentials, params.namespace, checkedView),

    async addRegistryCredential({ params, body, principal, now, requestKey }) {
      const { namespace } = params
      const { server, registry } = checkedServer(body)
      const key = credentialKey(credentials, namespace, registry)
      let isRepeated = false
      let isReplacement = false
      const entry = await secrets.sealing((protect) =>
        writeInside(services, namespace, (space) =>
          credentials.change(
            key,
            (existing, current): RegistryCredentialRecord => {
              isRepeated = existing !== undefined && isWrittenBy(existing, requestKey, now)
              isReplacement = isRepeated ? existing?.isReplacement === true : existing !== undefined
              if (existing && isRepeated) return existing
              if (existing && !body.replace) throw exists(existing.server, server, namespace)
              if (body.resourceVersion !== undefined && current?.rev !== body.resourceVersion) throw changed(server)
              const updatedAt = timestamp(now)
              const fields = {
                server,
                username: body.username,
                allowInsecure: body.allowInsecure ?? false,
                createdAt: existing?.createdAt ?? updatedAt,
                updatedAt,
                updatedBy: displayName(principal),
                ...(requestKey !== undefined && { requestKey, isReplacement }),
              }
              return protect(key, fields, body.password)
            },
            [space],
          ),
        ),
      )
      const answer = isRepeated ? checkedView(entry) : viewOf(entry)
      return isReplacement ? new Answer(200, answer) : answer
    },

    async removeRegistryCredential({ params, body }) {
      const { namespace } = params
      const parsed = parseRegistryServer(body.server)
      if (!parsed.ok) throw invalid(kind, [serverCause(parsed.problem)], parsed.hint)
      const key = credentialKey(credentials, namespace, parsed.registry)
      // Only if an earlier version wrote them. See control-plane/merge-credentials.ts.
      const others = credentials
        .list(namespace)
        .filter((each) => each.key !== key && registryIn(each.key) === parsed.registry)
      let name = parsed.server
      for (const each of [...others.map((other) => other.key), key])
        await credentials.change(each, (existing) => {
          if (!existing && others.length === 0) throw notFound(kind, parsed.server, { namespace })
          name = existing?.server ?? name
          return null
        })
      return success(`Registry credential ${name} removed from ${namespace}`, { kind, name })
    },
  }
}

/** Whether an earlier try of this request, whose response was lost in a crash, wrote the record. */
const isWrittenBy = (record: RegistryCredentialRecord, requestKey: string | undefined, now: Date): boolean =>
  requestKey !== undefined &&
  record.requestKey === requestKey &&
  !hasExpired('answer', record.updatedAt, timestamp(now))

function checkedServer(body: RegistryCredentialInput): { readonly server: string; readonly registry: string } {
  const parsed = parseRegistryServer(body.server)
  const causes = checkCredential(body, parsed)
  if (parsed.ok && causes.length === 0) return parsed
  throw invalid(kind, causes, parsed.ok ? hintFor(causes) : parsed.hint)
}

/** Checks the fields that are present, even if others are missing or have a wrong type. */
export function checkCredential(
  body: { readonly [Name in keyof RegistryCredentialInput]?: unknown },
  parsed = typeof body.server === 'string' ? parseRegistryServer(body.server) : undefined,
): Cause[] {
  const causes: Cause[] = []
  const fault = (field: string, message: string): void => void causes.push(invalidField(field, message))
  if (parsed && !parsed.ok) fault('server', parsed.problem)
  if (parsed?.ok && parsed.scheme === 'http' && body.allowInsecure !== true) {
    fault('allowInsecure', `${parsed.server} uses HTTP, which sends the password unencrypted`)
  }
  if (typeof body.username === 'string' && /[:\p{Cc}]/u.test(body.username)) {
    fault('username', 'username must not contain colons or control characters')
  }
  return causes
}

const serverCause = (message: string): Cause => invalidField('server', message)

const hintFor = (causes: readonly Cause[]): string =>
  causes.some((cause) => cause.field === 'allowInsecure')
    ? 'Use https, or add --allow-insecure ("allowInsecure": true)'
    : 'Correct the fields in details.causes'

function exists(stored: string, server: string, namespace: string): ApiError {
  const hint = 'Add --replace ("replace": true) to overwrite it'
  const why = stored === server ? '' : `${server} is the same registry. `
  return alreadyExists(kind, stored, { namespace, hint: why + hint })
}

const changed = (server: string): ApiError =>
  conflict(kind, server, 'has another resourceVersion', 'List the credentials, then try again')

const altered = (server: string, cause: SealError): ApiError =>
  new ApiError(
    'InternalError',
    `Registry credential ${server} cannot be decrypted: it was changed outside the service`,
    {
      kind,
      name: server,
      hint: 'Remove it and add it again; find out who changed the data',
      cause,
    },
  )
