// VirtualMachineConfig: values for deployments, under a name.
import { isDeepStrictEqual } from 'node:util'
import * as t from 'typebox'
import {
  createVmConfig,
  deleteVmConfig,
  listVmConfigs,
  updateVmConfig,
  type VmConfig,
} from '../../../api/vms/vm-configs.ts'
import type { VmConfigRecord } from '../../../store/records/fleet-records.ts'
import { given, type Kind, type KubeObject, type ObjectInput } from './kind.ts'
import { archLabel, creatorAnnotation, objectSpec, orka } from './orka.ts'
import { askedShape, column, ownerColumn, shapeFieldPaths, shapeSchema, shownShape } from './vm-fields.ts'

/** Whether both ask for the same. */
const sameShape = (before: KubeObject, after: ObjectInput): boolean =>
  isDeepStrictEqual(askedShape(objectSpec(before)), askedShape(objectSpec(after)))

export const vmConfigKind: Kind = {
  ...orka,
  kind: 'VirtualMachineConfig',
  plural: 'virtualmachineconfigs',
  singular: 'virtualmachineconfig',
  shortNames: ['vmconfig', 'vmconfigs'],
  description: 'Values for deployments, named by the label orka.macstadium.com/vm-config of a VirtualMachineInstance',
  scope: 'namespace',
  keptAs: 'vmconfigs',
  computedLabels: [archLabel],
  list: listVmConfigs,
  show: (config: VmConfig, record: VmConfigRecord) => ({
    name: config.name,
    namespace: config.namespace,
    createdAt: config.createdAt,
    labels: { [archLabel]: config.type },
    annotations: { [creatorAnnotation]: config.owner },
    body: { spec: shownShape(record.shape) },
  }),
  schema: { spec: t.Object(shapeSchema, { description: 'What a deployment gets that does not say otherwise' }) },
  columns: [
    column(['Image', 'string', 'spec.image']),
    column(['CPU', 'integer', 'spec.cpu']),
    column(['Memory', 'number', 'spec.memory']),
    column(['ISO', 'string', 'spec.iso', true]),
    column(['VNC', 'boolean', 'spec.vncConsole', true]),
    column(['Scheduler', 'string', 'spec.scheduler', true]),
    column(['Tag', 'string', 'spec.tag', true]),
    column(['Tag_Required', 'boolean', 'spec.tagRequired', true]),
    column(['Node_Name', 'string', 'spec.nodeName', true]),
    column(['GPU', 'boolean', 'spec.gpuPassthrough', true]),
    column(['Net_Boost', 'boolean', 'spec.netBoost', true]),
    column(['System_Serial', 'string', 'spec.systemSerial', true]),
    ownerColumn,
    column(['Display_Width', 'integer', 'spec.displayWidth', true]),
    column(['Display_Height', 'integer', 'spec.displayHeight', true]),
    column(['Display_DPI', 'integer', 'spec.displayDPI', true]),
  ],
  create: {
    operations: [createVmConfig],
    plan: ({ metadata, ...object }) => ({
      operation: createVmConfig,
      body: given({ name: metadata.name, type: metadata.labels[archLabel], ...askedShape(objectSpec(object)) }),
    }),
  },
  update: {
    operations: [updateVmConfig],
    plan: (before, after) =>
      sameShape(before, after)
        ? []
        : [
            {
              operation: updateVmConfig,
              params: { vmconfig: before.metadata.name },
              body: askedShape(objectSpec(after)),
            },
          ],
    isAllowed: () => true,
  },
  remove: {
    operation: deleteVmConfig,
    plan: ({ metadata }) => ({ operation: deleteVmConfig, params: { vmconfig: metadata.name } }),
  },
  fieldPaths: { ...shapeFieldPaths, type: `metadata.labels.${archLabel}` },
}
