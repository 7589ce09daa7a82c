// svc3 vm-config update
import { getVmConfig, updateVmConfig, type VmConfig, type VmConfigUpdate } from '../../../api/vms/vm-configs.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'
import { shapeOf, shapeOptions } from '../vm/parts/shape.ts'

type Field = keyof VmConfig & keyof VmConfigUpdate

/** Options, and the fields that they set. */
const fieldOf: Readonly<Record<keyof typeof shapeOptions, Field>> = {
  cpu: 'cpu',
  memory: 'memory',
  node: 'node',
  tag: 'tag',
  'tag-required': 'tagRequired',
  scheduler: 'scheduler',
  iso: 'iso',
  'system-serial': 'systemSerial',
  gpu: 'gpuPassthrough',
  'disable-vnc': 'vncConsole',
  'disable-net-boost': 'netBoost',
  'legacy-io': 'legacyIO',
  'display-width': 'displayWidth',
  'display-height': 'displayHeight',
  'display-dpi': 'displayDPI',
}

export const command = defineCommand({
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
    const change = { ...(image !== undefined && { image }), ...shapeOf(options) }
    if (Object.keys(change).length + reset.size === 0)
      throw new UsageError('Nothing to change', 'Specify an option, such as --image IMAGE or --cpu CORES')
    const { client, namespace } = await context.connect()
    const { signal } = context
    const params = { namespace, vmconfig: name }
    const before = await client.call(getVmConfig, { params, signal })
    const body = { ...valuesOf(before, reset), ...change, resourceVersion: before.resourceVersion }
    const record = await client.call(updateVmConfig, { params, body, signal })
    await context.done(`VM configuration ${record.name} changed in ${namespace}.`, record)
    return 0
  },
})

function fieldsToReset(given: readonly string[]): ReadonlySet<Field> {
  const names = given.flatMap((list) => list.split(',')).map((name) => name.trim().replace(/^--/, ''))
  const unknown = names.find((name) => !Object.hasOwn(fieldOf, name))
  if (unknown !== undefined)
    throw new UsageError(`Invalid --reset "${unknown}"`, `Use any of ${Object.keys(fieldOf).join(', ')}`)
  return new Set(names.map((name) => fieldOf[name as keyof typeof fieldOf]))
}

function valuesOf(config: VmConfig, without: ReadonlySet<Field>): Pick<VmConfigUpdate, 'image'> {
  const kept = Object.values(fieldOf).filter((field) => !without.has(field))
  return { image: config.image, ...Object.fromEntries(kept.map((field) => [field, config[field]])) }
}
