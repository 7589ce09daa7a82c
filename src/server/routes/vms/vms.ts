// Handlers of VMs. They write the desired state and wait until the agent has reported that it is reached.
import { ApiError, invalid, invalidField, notFound, success } from '../../../api/errors.ts'
import type * as api from '../../../api/vms/vms.ts'
import type { Vm } from '../../../api/vms/vms.ts'
import { displayName } from '../../../auth/principal.ts'
import { callerOf, type Roles } from '../../../auth/roles.ts'
import { timestamp } from '../../../platform/clock.ts'
import { parseTtl, ttlRule } from '../../../rules/durations.ts'
import { type Candidate, demandOf } from '../../../rules/placement.ts'
import { shownVerdicts, verdictsOn } from '../../../rules/placement-reasons.ts'
import type { VmRecord } from '../../../store/records/fleet-records.ts'
import { changeVm, isDeleted, removeVm } from '../../../store/records/vms.ts'
import type { Entry } from '../../../store/store.ts'
import type { Settings } from '../../config/settings.ts'
import { existingIn } from '../../gate/existing.ts'
import { mustOwn } from '../../gate/ownership.ts'
import { Answer } from '../../http/answer.ts'
import { imageKinds, type KindServices } from '../../images/kinds.ts'
import { listing } from '../../lists/listing.ts'
import type { Tunnels } from '../../nodes/tunnels.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import { awaitDeleted, changePower } from '../../vms/actions.ts'
import { awaitDeployment } from '../../vms/await-deployment.ts'
import { pinnedAnew } from '../../vms/base-image.ts'
import { isRepeated, requestCommit, requestSave } from '../../vms/captures.ts'
import { createVm, type DeployServices } from '../../vms/deployment.ts'
import { openMemorySaves } from '../../vms/memory-save.ts'
import { timeoutMsOf } from '../../vms/planned-vm.ts'
import { type ResizeServices, resizeDisk } from '../../vms/resize.ts'
import { resizeNote } from '../../vms/sizes.ts'
import { vmView } from '../../vms/vm-view.ts'

const kind = 'vms'

interface VmServices extends KindServices, ResizeServices, Omit<DeployServices, 'collections'> {
  readonly settings: Pick<Settings, 'images' | 'registries'>
  readonly roles: Roles
  readonly tunnels: Tunnels
  readonly roomsIn: (namespace: string) => readonly Candidate[]
}

export function vms(services: VmServices): HandlersOf<typeof api> {
  const { collections, roles, tunnels } = services
  const { store: images, contents } = imageKinds(services).image
  const memorySaveOf = openMemorySaves(collections, contents)
  const existing = existingIn(collections.vms, kind)

  /** Whether a repeated request has its event already. The server may have been killed before it answered. */
  const isRecorded = ({ value }: Entry<VmRecord>, requestKey: string | undefined): boolean =>
    isRepeated(value, requestKey) &&
    collections.events.list(value.namespace).some(({ value: event }) => event.requestKey === requestKey)

  return {
    listVms: ({ params }) => listing(collections.vms, params.namespace, vmView),

    async getVm({ params: { namespace, vm } }) {
      const entry = existing(namespace, vm)
      if (entry.value.observed.power === 'running' && !isDeleted(entry.value))
        return { ...vmView(entry), memorySave: await memorySaveOf(entry.value) }
      if (entry.value.place || isDeleted(entry.value)) return vmView(entry)
      const nodes = verdictsOn(demandOf(entry.value), services.roomsIn(namespace)).slice(0, shownVerdicts)
      return { ...vmView(entry), nodes }
    },

    async deployVm({ params: { namespace }, body, query, principal, now, requestKey, expedite, gone, accepted }) {
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
      const signals = { expedite, ...(query?.onDisconnect === 'delete' && { gone }) }
      return new Answer(201, vmView(await awaitDeployment(services, entry, timeoutMsOf(body), signals)), hasEvent)
    },

    async deleteVm({ params: { namespace, vm }, query, principal, accepted }) {
      const entry = existing(namespace, vm)
      const isAdmin = roles.roleOf(principal, namespace) === 'admin'
      mustOwn(principal, isAdmin ? 'admin' : 'dev', { ...entry.value, kind, noun: 'VM' })
      if (query?.force === true && !isAdmin) throw forceIsForAdmins(vm)
      const answer = success(`VM ${vm} deleted from ${namespace}`, { kind, name: vm })
      await removeVm(collections, entry)
      // From here on, the VM is deleted even if this request fails.
      await Promise.all([accepted?.(answer), awaitDeleted(services, entry, query?.force === true)])
      return answer
    },

    async execVm({ params, body: { command }, requestKey }) {
      const isRevert = command === 'revert'
      const before = existing(params.namespace, params.vm)
      const entry = await changePower(services, params, {
        action: command,
        requestKey,
        desired: ({ desired }) => (isRevert ? { diskGeneration: desired.diskGeneration + 1 } : {}),
        prepare: (next) => (isRevert ? pinnedAnew(next, collections.images.get('', next.shape.image)?.value) : next),
      })
      return new Answer(200, vmView(entry), isRecorded(before, requestKey))
    },

    async resizeVm({ params, body, requestKey }) {
      const before = existing(params.namespace, params.vm)
      const { entry, hasLogin } = await resizeDisk(services, params, body, requestKey)
      return new Answer(200, resizeNote(vmView(entry), hasLogin), isRecorded(before, requestKey))
    },

    async saveVm({ params, body: { imageName, description }, principal, now, requestKey }) {
      const vm = existing(params.namespace, params.vm)
      const caller = callerOf(roles, principal)
      const context = { namespace: params.namespace, caller, now, requestKey }
      const created = await requestSave(services, images, { vm, imageName, description, context })
      const memory = await memorySaveOf(vm.value)
      return new Answer(202, { ...images.view(created.entry, caller), memory }, created.isRepeated)
    },

    async commitVm({ params, body, principal, now, requestKey }) {
      const caller = callerOf(roles, principal)
      const vm = existing(params.namespace, params.vm)
      const request = { vm, caller, description: body?.description, now, requestKey }
      const locked = await requestCommit(services, images, request)
      const memory = await memorySaveOf(vm.value)
      return new Answer(202, { ...images.view(locked.entry, caller), memory }, locked.isRepeated)
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

const forceIsForAdmins = (name: string): ApiError =>
  new ApiError('Forbidden', 'Forbidden: only administrators can use --force', {
    kind,
    name,
    hint: 'Delete the VM without --force',
  })

function badTtl(ttl: string): ApiError {
  const cause = invalidField('ttl', `ttl "${ttl}" is not ${ttlRule}`)
  return invalid(kind, [cause], 'Use a duration such as 2h, 30m or 1d, or 0 for no limit')
}
