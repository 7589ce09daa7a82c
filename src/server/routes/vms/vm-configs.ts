// Handlers of VM configurations: named sets of deployment values, validated when they are written.
import { alreadyExists, type Cause, invalid, invalidField, notFound, success } from '../../../api/errors.ts'
import type * as api from '../../../api/vms/vm-configs.ts'
import type { VmConfig, VmConfigUpdate } from '../../../api/vms/vm-configs.ts'
import { machineOf, type VmShape } from '../../../api/vms/vm-shape.ts'
import { displayName } from '../../../auth/principal.ts'
import type { Roles } from '../../../auth/roles.ts'
import { timestamp } from '../../../platform/clock.ts'
import type { Collections } from '../../../store/records/collections.ts'
import type { VmConfigRecord } from '../../../store/records/fleet-records.ts'
import type { Entry } from '../../../store/store.ts'
import { existingIn } from '../../gate/existing.ts'
import { createOnce } from '../../gate/namespace.ts'
import { mustOwn } from '../../gate/ownership.ts'
import { listing } from '../../lists/listing.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import { configNameProblems } from '../../vms/deployment-problems.ts'
import { findImage } from '../../vms/planned-vm.ts'
import { shapeOf, shapeProblems } from '../../vms/shape.ts'

const kind = 'vmconfigs'
const noun = 'VM configuration'

interface VmConfigServices {
  readonly collections: Collections
  readonly roles: Roles
}

export function vmConfigs(services: VmConfigServices): HandlersOf<typeof api> {
  const { collections, roles } = services
  const existing = existingIn(collections.vmConfigs, kind)

  function checkedShape(body: VmConfigUpdate, problems: readonly Cause[] = []): VmShape {
    const image = findImage(collections.images, body.image)
    const shape = shapeOf(body, image)
    const causes = [...shapeProblems(shape, body), ...problems]
    if (body.type && body.type !== image.architecture)
      causes.push(invalidField('type', `type is ${body.type.slice(0, 20)}, but the image is ${image.architecture}`))
    if (causes.length > 0) throw invalid(kind, causes, 'Correct the fields named in details.causes')
    return shape
  }

  return {
    listVmConfigs: ({ params }) => listing(collections.vmConfigs, params.namespace, vmConfigView),

    getVmConfig: ({ params: { namespace, vmconfig } }) => vmConfigView(existing(namespace, vmconfig)),

    async createVmConfig({ params: { namespace }, body, principal, now, requestKey }) {
      const { name } = body
      const shape = checkedShape(body, configNameProblems(name))
      const record: VmConfigRecord = {
        name,
        namespace,
        owner: displayName(principal),
        createdAt: timestamp(now),
        ...(requestKey !== undefined && { requestKey }),
        shape,
      }
      const nameTaken = () =>
        alreadyExists(kind, name, { namespace, hint: 'Choose another name, or delete the configuration first' })
      return vmConfigView(await createOnce(services, namespace, collections.vmConfigs, record, nameTaken))
    },

    async updateVmConfig({ params: { namespace, vmconfig: name }, body, principal }) {
      const { key, value } = existing(namespace, name)
      mustOwn(principal, roles.roleOf(principal, namespace), { ...value, kind, noun })
      const shape = checkedShape(body)
      const changed = await collections.vmConfigs.change(key, (record) => record && { ...record, shape })
      if (!changed) throw notFound(kind, name, { namespace })
      return vmConfigView(changed)
    },

    async deleteVmConfig({ params: { namespace, vmconfig: name }, principal }) {
      const entry = existing(namespace, name)
      mustOwn(principal, roles.roleOf(principal, namespace), { ...entry.value, kind, noun })
      await collections.vmConfigs.change(entry.key, (record) =>
        record?.createdAt === entry.value.createdAt && record.owner === entry.value.owner ? null : undefined,
      )
      return success(`VM configuration ${name} deleted from ${namespace}`, { kind, name })
    },
  }
}

function vmConfigView({ value, rev }: Entry<VmConfigRecord>): VmConfig {
  const { architecture, memoryMiB, display, ...shape } = value.shape
  return {
    name: value.name,
    namespace: value.namespace,
    ...shape,
    ...machineOf(shape),
    ...(shape.node !== undefined && { nodeName: shape.node }),
    type: architecture,
    memory: Number((memoryMiB / 1_024).toFixed(2)),
    displayWidth: display.width,
    displayHeight: display.height,
    displayDPI: display.dpi,
    owner: value.owner,
    createdAt: value.createdAt,
    resourceVersion: rev,
  }
}
