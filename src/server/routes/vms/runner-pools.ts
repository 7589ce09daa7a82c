// Handlers of runner pools. They write the desired state and seal credentials. controllers/runners carries it out.
import { randomUUID } from 'node:crypto'
import { ApiError, alreadyExists, conflict, invalid, invalidIf, notFound, success } from '../../../api/errors.ts'
import type * as api from '../../../api/vms/runner-pools.ts'
import type { RunnerPool, RunnerPoolChange, RunnerPoolInput } from '../../../api/vms/runner-pools.ts'
import { displayName } from '../../../auth/principal.ts'
import type { Secrets } from '../../../auth/secrets.ts'
import { type Clock, timestamp } from '../../../platform/clock.ts'
import { defined } from '../../../platform/defined.ts'
import { parseTtl } from '../../../rules/durations.ts'
import { noDemand } from '../../../rules/runners/jobs.ts'
import { parseRunnerScope } from '../../../rules/runners/scope.ts'
import type { Collections } from '../../../store/records/collections.ts'
import { guestSecretName, type RunnerJobRecord, type RunnerPoolRecord } from '../../../store/records/runner-records.ts'
import type { Entry } from '../../../store/store.ts'
import { existingIn, nothingToChange } from '../../gate/existing.ts'
import { createOnce } from '../../gate/namespace.ts'
import { listing } from '../../lists/listing.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import { configFor } from '../../vms/planned-vm.ts'
import {
  changedPool,
  idleProblems,
  newPoolProblems,
  settingProblems,
  validCredential,
} from '../../vms/runner-pool-input.ts'
import { runnerJobView, runnerPoolView } from '../../vms/runner-pool-view.ts'

const kind = 'runnerpools'
const hint = 'Correct the fields in details.causes'
const changeable =
  'Set config, credential, minIdle, max, labels, connectWithin, idleFor, runnerFolder, user, ssh, firstBoot or paused'
const defaults = { max: 10, connectWithin: '3m', idleFor: '5m', runnerFolder: '/opt/actions-runner', group: 'Default' }

interface RunnerPoolServices {
  readonly collections: Collections
  readonly secrets: Secrets
  readonly clock: Clock
}

export function runnerPools(services: RunnerPoolServices): HandlersOf<typeof api> {
  const { collections, clock } = services
  const { runnerPools: pools, runnerJobs } = collections

  const existing = existingIn(pools, kind)
  const view = (entry: Entry<RunnerPoolRecord>): RunnerPool => runnerPoolView(entry, jobsOf(entry.value), clock.now())

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
    return view(changed)
  }

  const checkConfig = (namespace: string, config: string): void => {
    if (!configFor(collections.vmConfigs, namespace, config)) throw notFound('vmconfigs', config, { namespace })
  }

  return {
    listRunnerPools: ({ params }) => ({ ...listing(pools, params.namespace, view), isDerived: true }),

    getRunnerPool: ({ params: { namespace, runnerpool } }) => view(existing(namespace, runnerpool)),

    listRunnerJobs: ({ params: { namespace } }) =>
      listing(runnerJobs, namespace, ({ value }) => runnerJobView(value, pools.get(namespace, value.pool)?.value.url)),

    async createRunnerPool({ params: { namespace }, body, principal, now, requestKey }) {
      const { name, config, scaleSet = name, group = defaults.group } = body
      const scope = parseRunnerScope(body.url)
      const credential = validCredential(body.credential, scope.ok && scope.scope.kind === 'enterprise')
      const causes = [
        ...newPoolProblems(body),
        ...invalidIf(!scope.ok, 'url', scope.ok ? '' : scope.problem),
        ...('causes' in credential ? credential.causes : []),
      ]
      if (causes.length > 0 || !scope.ok || 'causes' in credential) throw invalid(kind, causes, hint)
      checkConfig(namespace, config)
      const { url } = scope.scope
      checkScaleSet(pools, { name, namespace, url, scaleSet, group })
      const record = newPool({ namespace, body, url, credential: credential.kind }, displayName(principal), now)
      const planned = changedPool({ ...record, ...defined({ requestKey }) }, body)
      const tooMany = idleProblems(planned)
      if (tooMany.length > 0) throw invalid(kind, tooMany, hint)
      const nameTaken = () =>
        alreadyExists(kind, name, {
          namespace,
          hint: 'Choose another name, or change the runner pool: svc3 runner-pool update',
        })
      // Credentials are written first, so that every pool has its own. drive-runners deletes those without a pool.
      await seal(services, planned, credential.secret, now)
      await sealGuest(services, planned, body, now)
      return view(await createOnce(services, namespace, pools, planned, nameTaken))
    },

    async updateRunnerPool({ params, body, now }) {
      const { namespace, runnerpool: name } = params
      const { resourceVersion: _, ...wanted } = body
      if (Object.keys(wanted).length === 0) throw nothingToChange(kind, name, changeable)
      const { value } = existing(namespace, name)
      const scope = parseRunnerScope(value.url)
      const credential =
        body.credential && validCredential(body.credential, scope.ok && scope.scope.kind === 'enterprise')
      const causes = [...settingProblems(body), ...(credential && 'causes' in credential ? credential.causes : [])]
      if (causes.length > 0) throw invalid(kind, causes, hint)
      if (body.config !== undefined) checkConfig(namespace, body.config)
      // Checked before the secrets are replaced, so that a refused request changes nothing.
      const tooMany = idleProblems(changedPool(value, body))
      if (tooMany.length > 0) throw invalid(kind, tooMany, hint)
      if (value.deleting) throw beingDeleted(name)
      if (credential && 'secret' in credential) await seal(services, value, credential.secret, now)
      await sealGuest(services, value, body, now)
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

/** Stores a secret of the pool, by default under the uid of the pool. */
function seal(
  { collections: { runnerCredentials }, secrets }: RunnerPoolServices,
  { name: pool, namespace, uid }: RunnerPoolRecord,
  secret: string,
  now: Date,
  name = uid,
) {
  const key = runnerCredentials.key('', name)
  return secrets.sealing((protect) =>
    runnerCredentials.change(key, () => protect(key, { pool, namespace, uid, updatedAt: timestamp(now) }, secret)),
  )
}

async function sealGuest(
  services: RunnerPoolServices,
  pool: RunnerPoolRecord,
  { ssh }: Pick<RunnerPoolChange, 'ssh'>,
  now: Date,
): Promise<void> {
  if (!ssh) return
  const { user: _, ...secret } = ssh
  await seal(services, pool, JSON.stringify(secret), now, guestSecretName(pool))
}

/** Names of scale sets are unique in a runner group of GitHub. */
function checkScaleSet(
  pools: Collections['runnerPools'],
  own: Pick<RunnerPoolRecord, 'name' | 'namespace' | 'url' | 'scaleSet' | 'group'>,
): void {
  const { name, namespace, url, scaleSet, group } = own
  const other = pools
    .list()
    .find(({ value }) => value.url === url && value.scaleSet === scaleSet && value.group === group)?.value
  if (!other || (other.name === name && other.namespace === namespace)) return
  throw new ApiError('Conflict', `Runner pool ${other.name} in ${other.namespace} has scale set ${scaleSet} already`, {
    kind,
    name,
    hint: 'Choose another scaleSet or group',
  })
}

interface NewPool {
  readonly namespace: string
  readonly body: RunnerPoolInput
  readonly url: string
  readonly credential: RunnerPoolRecord['credential']
}

function newPool({ namespace, body, url, credential }: NewPool, owner: string, now: Date): RunnerPoolRecord {
  const { name, config, scaleSet = name, group = defaults.group } = body
  const at = timestamp(now)
  return {
    name,
    namespace,
    uid: randomUUID(),
    owner,
    createdAt: at,
    url,
    scaleSet,
    labels: [scaleSet],
    group,
    credential,
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
}

const beingDeleted = (name: string): ApiError =>
  conflict(kind, name, 'is being deleted', 'Wait until it is deleted, then create it again')
