// VMs in the API of 2.4.x, which names them by configuration, name or id.
import { ApiError } from '../../api/errors.ts'
import { listNodes } from '../../api/nodes/nodes.ts'
import { deleteVmConfig, listVmConfigs } from '../../api/vms/vm-configs.ts'
import { deleteVm, execVm, listVms, type Vm, type vmCommands } from '../../api/vms/vms.ts'
import type { LegacyContext, LegacyHandler, LegacyHandlers } from './call.ts'
import type { LegacyAnswer } from './envelope.ts'
import { readLegacyFields, text } from './fields.ts'
import { boostsOf, configNameOf, deployedVm, notDeployedVm } from './shapes.ts'

const oneVm = { orka_vm_name: text, orka_node_name: text }

const isCalled = (vm: Vm, name: string): boolean => vm.uid === name || vm.name === name || configNameOf(vm) === name

/** The VMs with this id, name or name of a configuration. */
async function vmsCalled(context: LegacyContext, name: string, node?: string): Promise<Vm[]> {
  const all = (await context.list(listVms)).filter((vm) => node === undefined || vm.node === node)
  const exact = all.find((vm) => vm.uid === name)
  return exact ? [exact] : all.filter((vm) => isCalled(vm, name))
}

const noneDeployedText = 'No VMs with that name are currently deployed'
const noneDeployed = (): ApiError =>
  new ApiError('NotFound', noneDeployedText, {
    kind: 'vms',
    hint: 'Call GET /resources/vm/list to see all VMs',
  })

/** Throws if no VM or several VMs have the name. */
export async function oneVmCalled(context: LegacyContext, name: string): Promise<Vm> {
  const [vm, ...others] = await vmsCalled(context, name)
  if (!vm) throw noneDeployed()
  if (others.length === 0) return vm
  const ids = [vm, ...others].map(({ uid }) => uid)
  throw new ApiError('Conflict', `${ids.length} VMs go by the name "${name}": use the id of one, ${ids.join(', ')}`, {
    kind: 'vms',
    hint: 'Call GET /resources/vm/status to see their ids',
  })
}

type Resource = ReturnType<typeof notDeployedVm> | ReturnType<typeof deployedGroup>

const deployedGroup = (name: string, status: readonly ReturnType<typeof deployedVm>[]) => ({
  virtual_machine_name: name,
  vm_deployment_status: 'Deployed',
  status,
})

/** Every configuration with its VMs, and the VMs without a configuration. */
async function resources(context: LegacyContext, isWanted: (owner: string, vm?: Vm) => boolean): Promise<Resource[]> {
  const configs = new Map((await context.list(listVmConfigs)).map((config) => [config.name, config]))
  const nodes = new Map((await context.list(listNodes)).map((node) => [node.name, node]))
  // Clients take every VM that is listed for one that runs.
  const deployed = (await context.list(listVms)).filter(({ status }) => status !== 'Pending')
  const groups = Map.groupBy(deployed, configNameOf)
  const names = [...new Set([...configs.keys(), ...groups.keys()])].toSorted()
  return names.flatMap((name): Resource[] => {
    const config = configs.get(name)
    const all = groups.get(name) ?? []
    if (config && all.length === 0) return isWanted(config.owner) ? [notDeployedVm(config)] : []
    const vms = all.filter((vm) => isWanted(vm.owner, vm))
    const facts = (vm: Vm) => ({
      config,
      node: nodes.get(vm.node ?? ''),
      replicas: all.length,
      boosts: boostsOf(context.services, vm),
    })
    const group = vms.map((vm) => deployedVm(vm, facts(vm)))
    return vms.length === 0 ? [] : [deployedGroup(name, group)]
  })
}

const list: LegacyHandler = async (context) => ({ virtual_machine_resources: await resources(context, () => true) })

const listOfUser: LegacyHandler = async (context) => {
  const user = context.params.user?.toLowerCase()
  return { virtual_machine_resources: await resources(context, (owner) => owner === user) }
}

const status: LegacyHandler = async (context) => {
  const name = context.params.vm ?? ''
  const vms = await vmsCalled(context, name)
  const ids = new Set(vms.map(({ uid }) => uid))
  if (vms[0]) context.request.legacyParams = { vm: vms[0].name }
  const all = await resources(context, (_owner, vm) => vm === undefined || ids.has(vm.uid))
  const found = all.filter((each) => 'status' in each || each.virtual_machine_name === name)
  // Not a 404 for an unknown VM: clients check the list and not the status.
  return { virtual_machine_resources: found }
}

async function removeAll(context: LegacyContext, vms: readonly Vm[]): Promise<void> {
  for (const { name: vm } of vms) await context.run(deleteVm, { params: { vm } })
}

const remove: LegacyHandler = async (context) => {
  const { orka_vm_name: name, orka_node_name: node } = readLegacyFields(context.fields, oneVm, ['orka_vm_name'])
  const vms = await vmsCalled(context, name, node)
  // Clients that delete a VM which may not exist look for this text in a 500, which 2.4.x answered.
  if (vms.length === 0) return { status: 500, errors: [{ message: noneDeployedText }] }
  await removeAll(context, vms)
  return { message: 'Successfully deleted VM' }
}

const purge: LegacyHandler = async (context) => {
  const { orka_vm_name: name } = readLegacyFields(context.fields, oneVm, ['orka_vm_name'])
  const vms = await vmsCalled(context, name)
  const called = new Set([name, ...vms.map(configNameOf)])
  const configs = (await context.list(listVmConfigs)).filter((config) => called.has(config.name))
  if (vms.length === 0 && configs.length === 0) throw noneDeployed()
  // With the configuration, all VMs of its name are deleted, also if an id named only one of them.
  const all = await Promise.all([...called].map((each) => vmsCalled(context, each)))
  await removeAll(context, all.flat().filter(isFirst))
  for (const { name: vmconfig } of configs) await context.run(deleteVmConfig, { params: { vmconfig } })
  return { message: 'Successfully purged VM' }
}

const isFirst = (vm: Vm, index: number, all: readonly Vm[]): boolean =>
  all.findIndex(({ uid }) => uid === vm.uid) === index

type Command = (typeof vmCommands)[number]

const done: Readonly<Record<Command, (name: string, node: string) => string>> = {
  start: (name, node) => `${name} has started on ${node}`,
  stop: (name, node) => `${name} has stopped on ${node}`,
  suspend: (name, node) => `${name} has been suspended on ${node}`,
  resume: (name, node) => `${name} has resumed on ${node}`,
  revert: (name, node) => `Successfully reverted ${name} on ${node}`,
}

const exec =
  (command: Command): LegacyHandler =>
  async (context): Promise<LegacyAnswer> => {
    const { orka_vm_name: name, orka_node_name: node } = readLegacyFields(context.fields, oneVm, ['orka_vm_name'])
    const vms = await vmsCalled(context, name, node)
    if (vms.length === 0) throw noneDeployed()
    for (const { name: vm } of vms) await context.run(execVm, { params: { vm }, body: { command } })
    return { message: vms.map((vm) => done[command](name, vm.node ?? 'N/A')).join('; ') }
  }

export const vmCalls: LegacyHandlers = {
  'GET /resources/vm/list': list,
  'GET /resources/vm/list/all': list,
  'GET /resources/vm/list/{user}': listOfUser,
  'GET /resources/vm/status/{vm}': status,
  'DELETE /resources/vm/delete': remove,
  'DELETE /resources/vm/purge': purge,
  ...Object.fromEntries(
    (Object.keys(done) as Command[]).map((command) => [`POST /resources/vm/exec/${command}`, exec(command)]),
  ),
}
