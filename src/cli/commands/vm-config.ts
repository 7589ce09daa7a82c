// svc3 vm-config

import { listPools } from '../../api/vms/pools.ts'
import { listRunnerPools } from '../../api/vms/runner-pools.ts'
import {
  createVmConfig,
  deleteVmConfig,
  getVmConfig,
  listVmConfigs,
  updateVmConfig,
  type VmConfig,
  type VmConfigUpdate,
} from '../../api/vms/vm-configs.ts'
import { isVmConfigName } from '../../rules/names.ts'
import { poolsWithout } from '../../rules/pools/pools-without.ts'
import { memorySize } from '../../rules/sizes.ts'
import { defineCommand, namespaced, printed } from '../command.ts'
import { UsageError } from '../line/usage.ts'
import type { OutputColumn } from '../output/output.ts'
import type { Field } from '../output/record.ts'
import { changeCommand, deleteCommand, listCommand, showCommand } from '../record-commands.ts'
import { requestedShape, shapeFields, shapeOptions } from './vm/parts/shape.ts'

const columns: readonly OutputColumn<VmConfig>[] = [
  { header: 'NAME', cell: (config) => config.name },
  { header: 'IMAGE', cell: (config) => config.image },
  { header: 'CPU', cell: (config) => config.cpu },
  { header: 'MEMORY', cell: ({ memory }) => (memory ? { plain: memory, shown: memorySize(memory * 1_024) } : 'auto') },
  { header: 'ISO', wide: true, cell: (config) => config.iso },
  { header: 'VNC', wide: true, cell: (config) => config.vncConsole },
  { header: 'SCHEDULER', wide: true, cell: (config) => config.scheduler },
  { header: 'TAG', wide: true, cell: (config) => config.tag },
  { header: 'TAG-REQUIRED', wide: true, cell: (config) => config.tagRequired },
  { header: 'NODE', wide: true, cell: (config) => config.node },
  { header: 'GPU', wide: true, cell: (config) => config.gpuPassthrough },
  { header: 'NET-BOOST', wide: true, cell: (config) => config.netBoost },
  { header: 'SERIAL', wide: true, cell: (config) => config.systemSerial },
  { header: 'OWNER', wide: true, cell: (config) => config.owner },
  { header: 'DISPLAY-WIDTH', wide: true, cell: (config) => config.displayWidth },
  { header: 'DISPLAY-HEIGHT', wide: true, cell: (config) => config.displayHeight },
  { header: 'DISPLAY-DPI', wide: true, cell: (config) => config.displayDPI },
]

const list = listCommand({
  examples: [{ line: 'svc3 vm-config list -o wide', does: 'List the configurations of the default namespace' }],
  list: listVmConfigs,
  columns,
  scope: 'all',
})

const fields: readonly Field<VmConfig>[] = [
  { label: 'Name', value: (config) => config.name },
  { label: 'Namespace', value: (config) => config.namespace },
  { label: 'Image', value: (config) => config.image },
  { label: 'Architecture', value: (config) => config.type },
  { label: 'CPU', value: (config) => config.cpu },
  { label: 'Memory', value: (config) => (config.memory ? memorySize(config.memory * 1_024) : 'auto') },
  { label: 'ISO', value: (config) => config.iso },
  { label: 'Node', value: (config) => config.node },
  { label: 'Tag', value: (config) => config.tag && `${config.tag} (${config.tagRequired ? 'required' : 'preferred'})` },
  { label: 'Scheduler', value: (config) => config.scheduler },
  { label: 'VNC', value: (config) => (config.vncConsole ? 'on' : 'off') },
  { label: 'Display', value: (config) => `${config.displayWidth}×${config.displayHeight}, ${config.displayDPI} dpi` },
  { label: 'GPU', value: (config) => (config.gpuPassthrough ? 'passed through' : undefined) },
  { label: 'Net boost', value: (config) => (config.netBoost ? 'on' : 'off') },
  { label: 'Serial number', value: (config) => config.systemSerial },
  { label: 'Folders of the host', value: (config) => config.directories?.join(', ') },
  { label: 'Owner', value: (config) => config.owner },
  { label: 'Created', value: (config) => ({ time: config.createdAt }) },
]

const show = showCommand({
  argument: { value: 'CONFIG', description: 'name of the VM configuration' },
  examples: [{ line: 'svc3 vm-config show ios-build', does: 'Show everything about a VM configuration' }],
  get: getVmConfig,
  fields,
})

/** Pools and VM configurations have names of the same form. */
export function checkConfigName(name: string): string {
  if (isVmConfigName(name)) return name
  throw new UsageError(
    `Invalid name "${name}"`,
    'Use up to 50 lowercase letters, digits and dashes, with a letter or digit at both ends',
  )
}

const create = changeCommand({
  description: 'Saves options under a name, for svc3 vm deploy --config.',
  arguments: {
    name: { value: 'NAME', description: 'up to 50 lowercase letters, digits and dashes', required: true },
  },
  options: {
    image: {
      type: 'string',
      short: 'i',
      value: 'IMAGE',
      required: true,
      description: 'Image name, or OCI reference (arm64)',
    },
    ...shapeOptions,
  },
  examples: [
    {
      line: 'svc3 vm-config create ios-build -i sonoma -c 4 -m 8 --tag ios',
      does: 'Create a configuration for builds',
    },
  ],
  change: createVmConfig,
  body: ({ args: { name }, options }) => {
    if (options['tag-required'] && options.tag === undefined)
      throw new UsageError('--tag-required requires --tag', 'Add --tag TAG')
    return { name: checkConfigName(name), image: options.image, ...requestedShape(options) }
  },
  done: ({ name, namespace }) => `VM configuration ${name} created in ${namespace}.`,
})

type ConfigField = (typeof shapeFields)[keyof typeof shapeFields]

const update = defineCommand({
  description: 'Omitted options stay as they are. VMs deployed from it do not change.',
  arguments: {
    name: { value: 'CONFIG', description: 'VM configuration to change', names: 'vm-configs', required: true },
  },
  options: {
    image: { type: 'string', short: 'i', value: 'IMAGE', description: 'Image name, or OCI reference (arm64)' },
    ...shapeOptions,
    reset: {
      type: 'string',
      value: 'OPTION[,…]',
      repeatable: true,
      description: 'Return options to their defaults, such as tag or disable-vnc',
    },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 vm-config update ios-build -i sequoia -c 6', does: 'Use another image and more cores' },
    { line: 'svc3 vm-config update ios-build --reset tag,tag-required', does: 'Deploy on any node' },
  ],
  async run(context, { args: { name }, options }) {
    const { image } = options
    const reset = fieldsToReset(options.reset)
    const change = { ...(image !== undefined && { image }), ...requestedShape(options) }
    if (Object.keys(change).length + reset.size === 0)
      throw new UsageError('Nothing to change', 'Specify an option, such as --image IMAGE or --cpu CORES')
    const { client, namespace } = await context.connect()
    const { signal } = context
    const params = { namespace, vmconfig: name }
    const before = await client.call(getVmConfig, { params, signal })
    const body = { ...valuesOf(before, reset), ...change, resourceVersion: before.resourceVersion }
    const record = await client.call(updateVmConfig, { params, body, signal })
    await context.done(`VM configuration ${record.name} changed in ${namespace}.`, record)
  },
})

function fieldsToReset(given: readonly string[]): ReadonlySet<ConfigField> {
  const names = given.flatMap((list) => list.split(',')).map((name) => name.trim().replace(/^--/, ''))
  const unknown = names.find((name) => !Object.hasOwn(shapeFields, name))
  if (unknown !== undefined)
    throw new UsageError(`Invalid --reset "${unknown}"`, `Use any of ${Object.keys(shapeFields).join(', ')}`)
  return new Set(names.map((name) => shapeFields[name as keyof typeof shapeFields]))
}

function valuesOf(config: VmConfig, without: ReadonlySet<ConfigField>): Pick<VmConfigUpdate, 'image'> {
  const remaining = Object.values(shapeFields).filter((field) => !without.has(field))
  return { image: config.image, ...Object.fromEntries(remaining.map((field) => [field, config[field]])) }
}

const deleteConfigs = deleteCommand({
  description: 'VMs deployed from it are kept. Pools and runner pools of it make no more VMs.',
  examples: [{ line: 'svc3 vm-config delete ios-build', does: 'Delete a configuration' }],
  remove: deleteVmConfig,
  sentence: (name) => `Successfully deleted vm config ${name}`,
  question: async (configs, { names, session: { client, namespace }, signal }) => {
    const input = { params: { namespace }, signal }
    const [pools, runnerPools] = await Promise.all([
      client.listAll(listPools, input).catch(() => []),
      client.listAll(listRunnerPools, input).catch(() => []),
    ])
    const lost = poolsWithout(names, pools, runnerPools)
    return [`Delete ${configs} in ${namespace}?`, ...(lost === undefined ? [] : [lost])].join(' ')
  },
})

export const commands = {
  list,
  show,
  create,
  update,
  delete: deleteConfigs,
}
