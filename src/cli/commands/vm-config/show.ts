// svc3 vm-config show
import { getVmConfig, type VmConfig } from '../../../api/vms/vm-configs.ts'
import { memorySize } from '../../../rules/sizes.ts'
import { defineCommand, namespaced, printed } from '../../command.ts'
import type { Field } from '../../output/record.ts'
import { printRecord } from '../../print-record.ts'

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
  { label: 'Owner', value: (config) => config.owner },
  { label: 'Created', value: (config) => ({ time: config.createdAt }) },
]

export const command = defineCommand({
  arguments: { name: { value: 'CONFIG', description: 'name of the VM configuration', required: true } },
  options: { ...namespaced, ...printed },
  examples: [{ line: 'svc3 vm-config show ios-build', does: 'Show everything about a VM configuration' }],
  async run(context, { args }) {
    const { client, namespace } = await context.connect()
    const params = { namespace, vmconfig: args.name }
    return printRecord(context, await client.call(getVmConfig, { params, signal: context.signal }), fields)
  },
})
