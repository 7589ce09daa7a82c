// Handlers of VMs: write the desired state, then wait until the record has reached it. Agents do the work.

import { ApiError, type Cause, conflict, invalid, invalidField, notFound, success } from '../../../api/errors.ts'
import type * as api from '../../../api/vms/vms.ts'
import type { Vm } from '../../../api/vms/vms.ts'
import { displayName } from '../../../auth/principal.ts'
import { callerOf, type Roles } from '../../../auth/roles.ts'
import { timestamp } from '../../../platform/clock.ts'
import { parseTtl, ttlRule } from '../../../rules/durations.ts'
import { type Candidate, demandOf } from '../../../rules/placement.ts'
import { shownVerdicts, verdictsOn } from '../../../rules/placement-reasons.ts'
import { powerAfter, type VmAction } from '../../../rules/vm-actions.ts'
import type { VmCapture, VmDesired, VmRecord } from '../../../store/records/fleet-records.ts'
import { changeVm, forgetVm, isDeleted, removeVm, withDesired } from '../../../store/records/vms.ts'
import type { Entry } from '../../../store/store.ts'
import type { Settings } from '../../config/settings.ts'
import { existingIn } from '../../gate/existing.ts'
import { mustOwn } from '../../gate/ownership.ts'
import { Answer } from '../../http/answer.ts'
import { imageKinds, type KindServices } from '../../images/kinds.ts'
import { listing } from '../../lists/listing.ts'
import type { GrowthCredentials } from '../../nodes/desired.ts'
import type { NodeRelay } from '../../nodes/node-relay.ts'
import type { Tunnels } from '../../nodes/tunnels.ts'
import { WaitedTooLong } from '../../nodes/waits.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import { type AwaitServices, awaitDeployment } from '../../vms/await-deployment.ts'
import { pinnedAnew } from '../../vms/base-image.ts'
import { isRepeated, requestCommit, requestSave } from '../../vms/captures.ts'
import { createVm, type DeployServices } from '../../vms/deployment.ts'
import { interruptionOf, throwIfInterrupted } from '../../vms/interruption.ts'
import { timeoutMsOf } from '../../vms/planned-vm.ts'
import { assertMay } from '../../vms/refusals.ts'
import { checkSize, resizeNote } from '../../vms/sizes.ts'
import { vmView } from '../../vms/vm-view.ts'

const kind = 'vms'
const actionTimeoutMs = 10 * 60_000
const deleteTimeoutMs = 60_000

interface VmServices extends KindServices, AwaitServices, Omit<DeployServices, 'collections'> {
  readonly nodeRelay: NodeRelay
  readonly settings: Pick<Settings, 'images' | 'registries'>
  readonly roles: Roles
  readonly growth: GrowthCredentials
  readonly tunnels: Tunnels
  /** The free capacity of a namespace's nodes, as the scheduler sees it. */
  readonly roomsIn: (namespace: string) => readonly Candidate[]
}

export function vms(services: VmServices): HandlersOf<typeof api> {
  const { collections, nodeRelay, waits, roles, growth, tunnels } = services
  const images = imageKinds(services).image.store
  const existing = existingIn(collections.vms, kind)

  /** Writes a desired state if the rules allow it, and waits until the node has reached it. */
  async function act(
    { namespace, vm: name }: { namespace: string; vm: string },
    action: VmAction,
    requestKey: string | undefined,
    desired: (record: VmRecord) => Partial<VmDesired>,
    prepare?: (next: VmRecord) => VmRecord,
  ): Promise<Entry<VmRecord>> {
    const { key, value } = existing(namespace, name)
    const wanted = await changeVm(collections, key, value.uid, (record) => {
      if (isRepeated(record, requestKey)) return undefined
      assertMay(action, record)
      const next = withDesired(record, { power: powerAfter(action), action, requestKey, ...desired(record) })
      return prepare ? prepare(next) : next
    })
    if (!wanted) throw notFound(kind, name, { namespace, hint: 'The VM was deleted in the meantime' })
    return settled(wanted, action)
  }

  /** Whether a repeated request has its event already: the server may have been killed before it answered. */
  const isRecorded = ({ value }: Entry<VmRecord>, requestKey: string | undefined): boolean =>
    isRepeated(value, requestKey) &&
    collections.events.list(value.namespace).some(({ value: event }) => event.requestKey === requestKey)

  async function settled({ key, value }: Entry<VmRecord>, action: string): Promise<Entry<VmRecord>> {
    const { name, uid, desired } = value
    const look = (entry: Entry<VmRecord> | undefined): Entry<VmRecord> | undefined => {
      if (!entry || entry.value.uid !== uid || isDeleted(entry.value))
        throw conflict(kind, name, `was deleted during ${action}`, 'Deploy another VM')
      return entry.value.observed.generation >= desired.generation ? entry : undefined
    }
    try {
      const entry = await waits.until(key, look, { ms: actionTimeoutMs, signal: interruptionOf(services) })
      const { problem } = entry.value.observed
      if (problem === undefined) return entry
      throw new ApiError('InternalError', `VM ${name}: ${action} failed. ${problem}`, {
        kind,
        name,
        hint: `Run svc3 vm logs ${name} -n ${value.namespace} to see what the guest printed`,
      })
    } catch (error) {
      throwIfInterrupted(services, value)
      if (!(error instanceof WaitedTooLong)) throw error
      throw new ApiError('Timeout', `VM ${name}: ${action} is still in progress`, {
        kind,
        name,
        hint: `It continues. Run svc3 vm show ${name} -n ${value.namespace} to follow it`,
      })
    }
  }

  async function awaitDeleted({ key, value }: Entry<VmRecord>, force: boolean): Promise<void> {
    if (force) await forgetVm(collections, key, value.uid)
    const isGone = (left: Entry<VmRecord> | undefined): true | undefined =>
      left?.value.uid === value.uid ? undefined : true
    try {
      await waits.until(key, isGone, { ms: deleteTimeoutMs, signal: interruptionOf(services) })
    } catch {
      throwIfInterrupted(services, value)
      const saving = collections.vms.at(key)?.value.captures?.map(destinationOf) ?? []
      if (saving.length > 0) throw waitsForCaptures(value, saving)
      const where = value.place ? `node ${value.place.node}` : 'its node'
      throw new ApiError('Timeout', `VM ${value.name} is being deleted, but ${where} has not responded yet`, {
        kind,
        name: value.name,
        hint: `It is deleted when the node responds. An administrator can remove it now: ${forceLine(value)}`,
      })
    }
  }

  return {
    listVms: ({ params }) => listing(collections.vms, params.namespace, vmView),

    getVm({ params: { namespace, vm } }) {
      const entry = existing(namespace, vm)
      if (entry.value.place || isDeleted(entry.value)) return vmView(entry)
      const nodes = verdictsOn(demandOf(entry.value), services.roomsIn(namespace)).slice(0, shownVerdicts)
      return { ...vmView(entry), nodes }
    },

    async deployVm({ params: { namespace }, body, query, principal, now, requestKey, expedite, accepted }) {
      const isAwaited = query?.wait !== false
      const owner = displayName(principal)
      const imageStart = services.settings.images.start
      const isRefusedOverQuota = query?.onQuota === 'refuse'
      const request = { namespace, body, owner, now, requestKey, isAwaited, imageStart, isRefusedOverQuota }
      let created: Vm | undefined
      const entry = await createVm(services, request, async (written) => {
        created = vmView(written)
        await accepted?.(created)
      })
      // A repeated request finds its VM, which has an event already.
      const hasEvent = created === undefined
      if (!isAwaited) return new Answer(202, created ?? vmView(entry), hasEvent)
      return new Answer(201, vmView(await awaitDeployment(services, entry, timeoutMsOf(body), expedite)), hasEvent)
    },

    async deleteVm({ params: { namespace, vm }, query, principal, accepted }) {
      const entry = existing(namespace, vm)
      const isAdmin = roles.roleOf(principal, namespace) === 'admin'
      mustOwn(principal, isAdmin ? 'admin' : 'dev', { ...entry.value, kind, noun: 'VM' })
      if (query?.force === true && !isAdmin) throw forceIsForAdmins(vm)
      const answer = success(`VM ${vm} deleted from ${namespace}`, { kind, name: vm })
      await removeVm(collections, entry)
      // From here on the VM will be deleted, even if this request fails.
      await Promise.all([accepted?.(answer), awaitDeleted(entry, query?.force === true)])
      return answer
    },

    async execVm({ params, body: { command }, requestKey }) {
      const isRevert = command === 'revert'
      const before = existing(params.namespace, params.vm)
      const entry = await act(
        params,
        command,
        requestKey,
        ({ desired }) => (isRevert ? { diskGeneration: desired.diskGeneration + 1 } : {}),
        (next) => (isRevert ? pinnedAnew(next, collections.images.get('', next.shape.image)?.value) : next),
      )
      return new Answer(200, vmView(entry), isRecorded(before, requestKey))
    },

    async resizeVm({ params, body: { size, user, password }, requestKey }) {
      const found = existing(params.namespace, params.vm)
      const before = found.value
      if (!isRepeated(before, requestKey))
        checkSize(before, { size, user, password }, collections.nodes.get('', before.place?.node ?? '')?.value)
      const hasLogin = user !== undefined && password !== undefined
      /** `ahead`: the generation for which another server has received the password already. */
      const resize = (ahead: number | undefined): Promise<Entry<VmRecord>> => {
        let generation: number | undefined
        return act(
          params,
          'resize',
          requestKey,
          () => ({ diskGb: size }),
          // Set before the record is written, because the desired state is sent as soon as it is.
          (next) => {
            generation = next.desired.generation
            if (ahead !== undefined && ahead !== generation) throw new MovedOn()
            if (hasLogin) growth.set(next.uid, { generation, user, password })
            return next
          },
        ).finally(() => growth.get(before.uid)?.generation === generation && growth.delete(before.uid))
      }
      for (;;) {
        const { desired, uid, place } = existing(params.namespace, params.vm).value
        const ahead = desired.generation + 1
        const isFar = hasLogin && (await nodeRelay.grow(place?.node ?? '', uid, { generation: ahead, user, password }))
        const entry = await resize(isFar ? ahead : undefined).catch(ifMovedOn)
        if (entry) return new Answer(200, resizeNote(vmView(entry), hasLogin), isRecorded(found, requestKey))
      }
    },

    async saveVm({ params, body: { imageName, description }, principal, now, requestKey }) {
      const vm = existing(params.namespace, params.vm)
      const caller = callerOf(roles, principal)
      const context = { namespace: params.namespace, caller, now, requestKey }
      const created = await requestSave(services, images, { vm, imageName, description, context })
      return new Answer(202, images.shown(created.entry, caller), created.isRepeated)
    },

    async commitVm({ params, body, principal, now, requestKey }) {
      const caller = callerOf(roles, principal)
      const vm = existing(params.namespace, params.vm)
      const request = { vm, caller, description: body?.description, now, requestKey }
      const locked = await requestCommit(services, images, request)
      return new Answer(202, images.shown(locked.entry, caller), locked.isRepeated)
    },

    async extendVm({ params: { namespace, vm }, body: { ttl }, principal, now }) {
      const seconds = ttl === '0' ? 0 : parseTtl(ttl)
      if (seconds === undefined) throw badTtl(ttl)
      const { key, value } = existing(namespace, vm)
      // Shortening the TTL may delete the VM, so it needs the same permission.
      mustOwn(principal, roles.roleOf(principal, namespace), { ...value, kind, noun: 'VM' })
      const changed = await changeVm(collections, key, value.uid, (record) => {
        if (isDeleted(record)) throw notFound(kind, vm, { namespace, hint: 'The VM is being deleted' })
        const { expiresAt: _, ...rest } = record
        return seconds === 0 ? rest : { ...rest, expiresAt: timestamp(new Date(now.getTime() + seconds * 1_000)) }
      })
      if (!changed) throw notFound(kind, vm, { namespace, hint: 'The VM was deleted in the meantime' })
      return vmView(changed)
    },

    getVmLogs: ({ params: { namespace, vm }, query }) =>
      tunnels.read(existing(namespace, vm).value, { follow: query?.follow === true, tail: query?.tail }),

    getVmCharts: ({ params: { namespace, vm }, query }) =>
      tunnels.measureVm(existing(namespace, vm).value, query?.minutes),

    connectVm: ({ params: { namespace, vm }, query }) => tunnels.connect(existing(namespace, vm).value, query?.port),
  }
}

const destinationOf = (capture: VmCapture): string => (capture.kind === 'push' ? capture.reference : capture.image)

const forceLine = ({ name, namespace }: VmRecord): string => `svc3 vm delete ${name} --force -n ${namespace}`

const waitsForCaptures = (vm: VmRecord, destinations: readonly string[]): ApiError =>
  new ApiError('Timeout', `VM ${vm.name} is being deleted; it is still being saved as ${destinations.join(', ')}`, {
    kind,
    name: vm.name,
    hint: `Follow it with svc3 image list -n ${vm.namespace} or svc3 vm get-push-status -n ${vm.namespace}. An administrator can abandon the save: ${forceLine(vm)}`,
  })

const forceIsForAdmins = (name: string): ApiError =>
  new ApiError('Forbidden', 'Forbidden: only administrators can use --force', {
    kind,
    name,
    hint: 'Delete the VM without --force',
  })

function badTtl(ttl: string): ApiError {
  const problem: Cause = invalidField('ttl', `ttl "${ttl}" is not ${ttlRule}`)
  return invalid(kind, [problem], 'Use a duration such as 2h, 30m or 1d, or 0 for no limit')
}

/** Another change took the generation that the password was sent ahead for. */
class MovedOn extends Error {
  override readonly name = 'MovedOn'
}

function ifMovedOn(error: unknown): undefined {
  if (!(error instanceof MovedOn)) throw error
}
