// VirtualMachineConfig: named values for deployments.
import { isDeepStrictEqual } from 'node:util'
import * as t from 'typebox'
import {
  createVmConfig,
  deleteVmConfig,
  listVmConfigs,
  updateVmConfig,
  type VmConfig,
} from '../../../api/vms/vm-configs.ts'
import { defined } from '../../../platform/defined.ts'
import type { VmConfigRecord } from '../../../store/records/fleet-records.ts'
import { column, owner, wide } from './columns.ts'
import { callFor, creation, defineKind, objectFields } from './kind.ts'
import { archLabel, creatorAnnotation, orka } from './orka.ts'
import { shapeFieldPaths, shapeInput, shapeSchema, shapeSpec } from './vm-fields.ts'

export const vmConfigKind = defineKind({
  ...orka,
  kind: 'VirtualMachineConfig',
  shortNames: ['vmconfig', 'vmconfigs'],
  description: 'Values for deployments, named by the label orka.macstadium.com/vm-config of a VirtualMachineInstance',
  scope: 'namespace',
  computedLabels: [archLabel],
  list: listVmConfigs,
  show: (config: VmConfig, record: VmConfigRecord) => ({
    name: config.name,
    namespace: config.namespace,
    createdAt: config.createdAt,
    labels: { [archLabel]: config.type },
    annotations: { [creatorAnnotation]: config.owner },
    body: { spec: shapeSpec(record.shape) },
  }),
  schema: { spec: t.Object(shapeSchema, { description: 'What a deployment gets that does not say otherwise' }) },
  columns: [
    column('Image', 'string', 'spec.image'),
    column('CPU', 'integer', 'spec.cpu'),
    column('Memory', 'number', 'spec.memory'),
    wide('ISO', 'string', 'spec.iso'),
    wide('VNC', 'boolean', 'spec.vncConsole'),
    wide('Scheduler', 'string', 'spec.scheduler'),
    wide('Tag', 'string', 'spec.tag'),
    wide('Tag_Required', 'boolean', 'spec.tagRequired'),
    wide('Node_Name', 'string', 'spec.nodeName'),
    wide('GPU', 'boolean', 'spec.gpuPassthrough'),
    wide('Net_Boost', 'boolean', 'spec.netBoost'),
    wide('System_Serial', 'string', 'spec.systemSerial'),
    owner,
    wide('Display_Width', 'integer', 'spec.displayWidth'),
    wide('Display_Height', 'integer', 'spec.displayHeight'),
    wide('Display_DPI', 'integer', 'spec.displayDPI'),
  ],
  create: creation(createVmConfig, ({ metadata, spec }) => ({
    body: defined({ name: metadata.name, type: metadata.labels[archLabel], ...shapeInput(objectFields(spec)) }),
  })),
  update: {
    operations: [updateVmConfig],
    plan: (before, after) => {
      const body = shapeInput(objectFields(after.spec))
      const isSame = isDeepStrictEqual(shapeInput(objectFields(before.spec)), body)
      return isSame ? [] : [{ ...callFor(updateVmConfig, before.metadata.name), body }]
    },
    mutable: 'all',
  },
  remove: deleteVmConfig,
  fieldPaths: { ...shapeFieldPaths, type: `metadata.labels.${archLabel}` },
})
