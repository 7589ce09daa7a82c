// Handlers of runner pools. They write what is wanted and seal the credentials; the controllers in controllers/runners do the rest.
import { randomUUID } from 'node:crypto'
import { ApiError, alreadyExists, type Cause, invalid, invalidField, notFound, success } from '../../../api/errors.ts'
import type * as api from '../../../api/vms/runner-pools.ts'
import type {
  RunnerCredentialInput,
  RunnerJob,
  RunnerPool,
  RunnerPoolChange,
  RunnerPoolInput,
} from '../../../api/vms/runner-pools.ts'
import { displayName } from '../../../auth/principal.ts'
import type { Secrets } from '../../../auth/secrets.ts'
import { type Clock, timestamp } from '../../../platform/clock.ts'
import { formatDuration, parseTtl } from '../../../rules/durations.ts'
import { isVmConfigName } from '../../../rules/names.ts'
import { noDemand, queueSeconds } from '../../../rules/runners/jobs.ts'
import { parseRunnerScope } from '../../../rules/runners/scope.ts'
import { isGuestUser, isRunnerFolder } from '../../../rules/runners/start-script.ts'
import type { Collections } from '../../../store/records/collections.ts'
import { guestSecretName, type RunnerJobRecord, type RunnerPoolRecord } from '../../../store/records/runner-records.ts'
import type { Entry } from '../../../store/store.ts'
import { createOnce } from '../../gate/namespace.ts'
import { listing } from '../../lists/listing.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import { configFor } from '../../vms/deployment.ts'

const kind = 'runnerpools'
const hint = 'Correct the fields in details.causes'
const defaults = { max: 10, connectWithin: '3m', idleFor: '5m', runnerFolder: '/opt/actions-runner', group: 'Default' }
/** The names of its VMs have a suffix. */
const longestName = 40

interface RunnerPoolServices {
  readonly collections: Collections
  readonly secrets: Secrets
  readonly clock: Clock
}

export function runnerPools(services: RunnerPoolServices): HandlersOf<typeof api> {
  const { collections, secrets, clock } = services
  const { runnerPools: pools, runnerCredentials, runnerJobs } = collections

  const existing = (namespace: string, name: string): Entry<RunnerPoolRecord> => {
    const entry = pools.get(namespace, name)
    if (!entry) throw notFound(kind, name, { namespace })
    return entry
  }
  const shown = (entry: Entry<RunnerPoolRecord>): RunnerPool => shownPool(entry, jobsOf(entry.value), clock.now())

  const jobsOf = ({ namespace, uid }: RunnerPoolRecord): RunnerJobRecord[] =>
    runnerJobs.list(namespace).flatMap(({ value }) => (value.poolUid === uid ? [value] : []))

  async function change(
    { namespace, runnerpool: name }: { readonly namespace: string; readonly runnerpool: string },
    next: (record: RunnerPoolRecord) => RunnerPoolRecord,
  ): Promise<RunnerPool> {
    const { key, value } = existing(namespace, name)
    const changed = await pools.change(key, (record) => {
      if (record?.uid !== value.uid) return undefined
      if (record.deleting) throw beingDeleted(name)
      return next(record)
    })
    if (changed?.value.uid !== value.uid) throw notFound(kind, name, { namespace })
    return shown(changed)
  }

  /** Under its uid, or under another name of it. */
  function seal({ name: pool, namespace, uid }: RunnerPoolRecord, secret: string, now: Date, name = uid) {
    const key = runnerCredentials.key('', name)
    return secrets.sealing((protect) =>
      runnerCredentials.change(key, () => protect(key, { pool, namespace, uid, updatedAt: timestamp(now) }, secret)),
    )
  }

  async function sealGuest(pool: RunnerPoolRecord, { ssh }: Pick<RunnerPoolChange, 'ssh'>, now: Date): Promise<void> {
    if (!ssh) return
    const { user: _, ...secret } = ssh
    await seal(pool, JSON.stringify(secret), now, guestSecretName(pool))
  }

  const checkConfig = (namespace: string, config: string): void => {
    if (!configFor(collections.vmConfigs, namespace, config)) throw notFound('vmconfigs', config, { namespace })
  }

  return {
    listRunnerPools: ({ params }) => ({ ...listing(pools, params.namespace, shown), isDerived: true }),

    getRunnerPool: ({ params: { namespace, runnerpool } }) => shown(existing(namespace, runnerpool)),

    listRunnerJobs: ({ params: { namespace } }) =>
      listing(runnerJobs, namespace, ({ value }) => shownJob(value, pools.get(namespace, value.pool)?.value.url)),

    async createRunnerPool({ params: { namespace }, body, principal, now, requestKey }) {
      const { name, config, scaleSet = name } = body
      const scope = parseRunnerScope(body.url)
      const credential = credentialOf(body.credential, scope.ok && scope.scope.kind === 'enterprise')
      const causes = [
        ...(isVmConfigName(name) && name.length <= longestName && /^[a-z]/.test(name)
          ? []
          : [
              invalidField(
                'name',
                `"${name.slice(0, 100)}" is not a valid name: use at most ${longestName} lowercase letters, digits and dashes, beginning with a letter`,
              ),
            ]),
        ...(scope.ok ? [] : [invalidField('url', scope.problem)]),
        ...('causes' in credential ? credential.causes : []),
        ...settingProblems(body),
        ...textProblems({ scaleSet, group: body.group }),
      ]
      if (causes.length > 0 || !scope.ok || 'causes' in credential) throw invalid(kind, causes, hint)
      checkConfig(namespace, config)
      const { url } = scope.scope
      const group = body.group ?? defaults.group
      const twin = pools
        .list()
        .find(({ value }) => value.url === url && value.scaleSet === scaleSet && value.group === group)?.value
      if (twin && !(twin.name === name && twin.namespace === namespace))
        throw new ApiError(
          'Conflict',
          `Runner pool ${twin.name} in ${twin.namespace} has scale set ${scaleSet} already`,
          {
            kind,
            name,
            hint: 'Choose another scaleSet or group',
          },
        )
      const at = timestamp(now)
      const record: RunnerPoolRecord = {
        name,
        namespace,
        uid: randomUUID(),
        owner: displayName(principal),
        createdAt: at,
        ...(requestKey !== undefined && { requestKey }),
        url,
        scaleSet,
        labels: [scaleSet],
        group,
        credential: credential.kind,
        config,
        minIdle: 0,
        max: defaults.max,
        connectSeconds: parseTtl(defaults.connectWithin) ?? 0,
        idleSeconds: parseTtl(defaults.idleFor) ?? 0,
        runnerFolder: defaults.runnerFolder,
        isPaused: false,
        cursor: 0,
        demand: { ...noDemand, at, serial: 0 },
        failing: { count: 0, at, message: '' },
        ended: {},
        status: {
          starting: 0,
          idle: 0,
          busy: 0,
          capacity: 0,
          condition: { reason: 'Connecting', message: 'Connecting to GitHub', since: at },
        },
      }
      const planned = changedPool(record, body)
      const tooMany = idleProblems(planned)
      if (tooMany.length > 0) throw invalid(kind, tooMany, hint)
      const taken = () =>
        alreadyExists(kind, name, {
          namespace,
          hint: 'Choose another name, or change the runner pool: svc3 runner-pool update',
        })
      // The secret first: a pool that is there has what it needs. Of one that is not, drive-runners sweeps it.
      await seal(planned, credential.secret, now)
      await sealGuest(planned, body, now)
      return shown(await createOnce(services, namespace, pools, planned, taken))
    },

    async updateRunnerPool({ params, body, now }) {
      const { namespace, runnerpool: name } = params
      const { resourceVersion: _, ...wanted } = body
      if (Object.keys(wanted).length === 0)
        throw new ApiError('BadRequest', 'Specify at least one field to change', {
          kind,
          name,
          hint: 'Set config, credential, minIdle, max, labels, connectWithin, idleFor, runnerFolder, user, ssh, firstBoot or paused',
        })
      const { value } = existing(namespace, name)
      const scope = parseRunnerScope(value.url)
      const credential = body.credential && credentialOf(body.credential, scope.ok && scope.scope.kind === 'enterprise')
      const causes = [...settingProblems(body), ...(credential && 'causes' in credential ? credential.causes : [])]
      if (causes.length > 0) throw invalid(kind, causes, hint)
      if (body.config !== undefined) checkConfig(namespace, body.config)
      // Before the secrets are replaced: a change that is refused changes nothing.
      const tooMany = idleProblems(changedPool(value, body))
      if (tooMany.length > 0) throw invalid(kind, tooMany, hint)
      if (value.deleting) throw beingDeleted(name)
      if (credential && 'secret' in credential) await seal(value, credential.secret, now)
      await sealGuest(value, body, now)
      return change(params, (record) => {
        const next = {
          ...changedPool(record, body),
          ...(credential && 'kind' in credential && { credential: credential.kind }),
        }
        const problems = idleProblems(next)
        if (problems.length > 0) throw invalid(kind, problems, hint)
        return next
      })
    },

    drainRunnerPool: ({ params }) => change(params, (record) => ({ ...record, isPaused: true, isDrained: true })),

    async deleteRunnerPool({ params: { namespace, runnerpool: name }, query }) {
      const entry = existing(namespace, name)
      await pools.change(entry.key, (record) =>
        record?.uid === entry.value.uid
          ? { ...record, deleting: { isForced: query?.force === true || record.deleting?.isForced === true } }
          : undefined,
      )
      return success(`Runner pool ${name} is being deleted from ${namespace}`, { kind, name })
    },
  }
}

function changedPool(
  { isDrained, sshUser, ...record }: RunnerPoolRecord,
  change: Omit<RunnerPoolChange, 'config'> & Pick<RunnerPoolInput, 'labels'> & { config?: string },
): RunnerPoolRecord {
  const { config, minIdle, max, labels, connectWithin, idleFor, runnerFolder, user, ssh, firstBoot, paused } = change
  const bySsh = ssh?.user ?? (firstBoot ? undefined : sshUser)
  return {
    ...record,
    ...(isDrained && paused !== false && { isDrained }),
    ...(config !== undefined && { config }),
    ...(minIdle !== undefined && { minIdle }),
    ...(max !== undefined && { max }),
    ...(labels && { labels: [...new Set(labels)] }),
    ...(connectWithin !== undefined && { connectSeconds: parseTtl(connectWithin) ?? record.connectSeconds }),
    ...(idleFor !== undefined && { idleSeconds: parseTtl(idleFor) ?? record.idleSeconds }),
    ...(runnerFolder !== undefined && { runnerFolder }),
    ...(user !== undefined && { user }),
    ...(bySsh !== undefined && { sshUser: bySsh }),
    ...(paused !== undefined && { isPaused: paused }),
  }
}

type Checked =
  | { readonly kind: RunnerPoolRecord['credential']; readonly secret: string }
  | { readonly causes: readonly Cause[] }

/** An App or a token, whole. What is secret of it is in no message. */
function credentialOf(
  { appId, installationId, privateKey, token }: RunnerCredentialInput,
  isEnterprise: boolean,
): Checked {
  const wrong = (message: string): Checked => ({ causes: [invalidField('credential', message)] })
  if (token !== undefined) {
    if (appId !== undefined || installationId !== undefined || privateKey !== undefined)
      return wrong('specify a token or a GitHub App, not both')
    return /^[\x21-\x7e]+$/.test(token)
      ? { kind: { kind: 'token' }, secret: token }
      : wrong('token is empty, or has spaces or other characters that no token has')
  }
  if (appId === undefined || installationId === undefined || privateKey === undefined)
    return wrong('specify appId, installationId and privateKey of a GitHub App, or a token')
  if (isEnterprise) return wrong('an enterprise needs a token: GitHub Apps cannot register runners there')
  if (!/^[A-Za-z0-9._-]+$/.test(appId)) return wrong('appId is not the id or client id of a GitHub App')
  if (!/^\d+$/.test(installationId)) return wrong('installationId is not a number')
  if (!/^-----BEGIN (RSA )?PRIVATE KEY-----\s/.test(privateKey))
    return wrong('privateKey is not a private key in PEM, as GitHub lets you download it')
  return { kind: { kind: 'app', appId, installationId }, secret: privateKey }
}

type Settings = Pick<
  RunnerPoolChange,
  'connectWithin' | 'idleFor' | 'runnerFolder' | 'user' | 'labels' | 'ssh' | 'firstBoot'
>

function settingProblems(settings: Settings): Cause[] {
  const { connectWithin, idleFor, runnerFolder, user, labels = [] } = settings
  const isShort = (text: string | undefined): boolean => text !== undefined && (parseTtl(text) ?? 0) < 10
  const badLabel = labels.find((label) => !labelForm.test(label))
  return [
    ...(isShort(connectWithin)
      ? [
          invalidField(
            'connectWithin',
            `connectWithin "${connectWithin}" is not a duration of at least 10 s; use 3m, for example`,
          ),
        ]
      : []),
    ...(isShort(idleFor)
      ? [invalidField('idleFor', `idleFor "${idleFor}" is not a duration of at least 10 s; use 5m, for example`)]
      : []),
    ...(runnerFolder !== undefined && !isRunnerFolder(runnerFolder)
      ? [
          invalidField(
            'runnerFolder',
            'runnerFolder is not an absolute path of letters, digits, dots, dashes and slashes',
          ),
        ]
      : []),
    ...(user !== undefined && !isGuestUser(user) ? [invalidField('user', 'user is not the name of a user')] : []),
    ...guestProblems(settings),
    ...(badLabel === undefined ? [] : [invalidField('labels', `invalid label "${badLabel.slice(0, 50)}"`)]),
  ]
}

/** How to log in to its guests: whole, and in one way. What is secret of it is in no message. */
function guestProblems({ ssh, firstBoot }: Settings): Cause[] {
  if (!ssh) return []
  const wrong = (message: string): Cause[] => [invalidField('ssh', message)]
  if (firstBoot) return wrong('specify ssh or firstBoot, not both')
  if (!isGuestUser(ssh.user)) return wrong('ssh.user is not the name of a user')
  if ((ssh.password === undefined) === (ssh.privateKey === undefined))
    return wrong('specify ssh.password or ssh.privateKey, one of them')
  if (ssh.password !== undefined && !/^[^\p{Cc}]+$/u.test(ssh.password))
    return wrong('ssh.password is empty, or has control characters')
  return ssh.privateKey === undefined || /^-----BEGIN [A-Z ]*PRIVATE KEY-----\s/.test(ssh.privateKey)
    ? []
    : wrong('ssh.privateKey is not a private key in PEM or of OpenSSH')
}

const labelForm = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/

const textProblems = (texts: { readonly scaleSet: string; readonly group?: string | undefined }): Cause[] => [
  ...(labelForm.test(texts.scaleSet) ? [] : [invalidField('scaleSet', 'scaleSet has characters that no label has')]),
  ...(texts.group === undefined || /^[^\p{Cc}]{1,100}$/u.test(texts.group)
    ? []
    : [invalidField('group', 'group is not the name of a runner group')]),
]

const beingDeleted = (name: string): ApiError =>
  new ApiError('Conflict', `Runner pool ${name} is being deleted`, {
    kind,
    name,
    hint: 'Wait until it is deleted, then create it again',
  })

const idleProblems = ({ minIdle, max }: RunnerPoolRecord): Cause[] =>
  minIdle > max ? [invalidField('minIdle', `minIdle is ${minIdle}, but max is ${max}`)] : []

function shownPool({ value, rev }: Entry<RunnerPoolRecord>, jobs: readonly RunnerJobRecord[], now: Date): RunnerPool {
  const { status, credential, user, sshUser } = value
  const waiting = jobs.filter(({ state }) => state === 'Waiting')
  const oldestMs = Math.min(now.getTime(), ...waiting.map(({ queuedAt }) => Date.parse(queuedAt)))
  const queue = queueSeconds(jobs)
  return {
    name: value.name,
    namespace: value.namespace,
    url: value.url,
    scaleSet: value.scaleSet,
    labels: [...value.labels],
    group: value.group,
    credential: { ...credential },
    config: value.config,
    minIdle: value.minIdle,
    max: value.max,
    connectWithin: formatDuration(value.connectSeconds),
    idleFor: formatDuration(value.idleSeconds),
    runnerFolder: value.runnerFolder,
    ...(user !== undefined && { user }),
    ...(sshUser !== undefined && { sshUser }),
    paused: value.isPaused,
    deleting: value.deleting !== undefined,
    waiting: Math.max(waiting.length, value.demand.assigned - value.demand.running),
    starting: status.starting,
    idle: status.idle,
    running: status.busy,
    capacity: status.capacity,
    ...(queue && { queueSeconds: queue }),
    oldestWaitingSeconds: Math.round((now.getTime() - oldestMs) / 1_000),
    ended: { ...value.ended },
    condition: { ...status.condition },
    owner: value.owner,
    createdAt: value.createdAt,
    resourceVersion: rev,
  }
}

function shownJob(
  { poolUid: _, isReported: __, endedAtSerial: ___, runId, ...job }: RunnerJobRecord,
  url = '',
): RunnerJob {
  const origin = URL.parse(url)?.origin ?? 'https://github.com'
  const runs = `${origin}/${job.repository}/actions`
  return { ...job, link: runId > 0 ? `${runs}/runs/${runId}` : runs }
}
