// VM configurations and deployments in the API of 2.4.x.
import { ApiError, badRequest, invalidField, notFound } from '../../api/errors.ts'
import { listNodes } from '../../api/nodes/nodes.ts'
import { createVmConfig, getVmConfig, listVmConfigs, type VmConfig } from '../../api/vms/vm-configs.ts'
import { deleteVm, deployVm, listVms, type Vm } from '../../api/vms/vms.ts'
import { defined } from '../../platform/defined.ts'
import { isVmName } from '../../rules/names.ts'
import { goneSignal } from '../http/gone-signal.ts'
import type { LegacyContext, LegacyHandler, LegacyHandlers } from './call.ts'
import { flag, integer, metadataItems, number, readLegacyFields, text, textList } from './fields.ts'
import { sharedNames } from './names.ts'
import { boostsOf, createHelp, deployHelp, deployment, legacyConfigLabel, shownConfig } from './shapes.ts'

const shared = {
  iso_image: text,
  vnc_console: flag,
  system_serial: text,
  gpu_passthrough: flag,
  tag: text,
  tag_required: flag,
  scheduler: text,
}

/** These are refused rather than ignored, because a job that needs a second disk would fail later without a reason. */
const disks = { attach_disk: flag, attached_disk: text }

function refuseDisks(read: {
  readonly attach_disk?: boolean | undefined
  readonly attached_disk?: string | undefined
}) {
  const field = read.attached_disk !== undefined ? 'attached_disk' : 'attach_disk'
  if (read[field]) throw problem(field, `${field}: attached disks no longer exist`)
}

const createFields = {
  ...shared,
  ...disks,
  orka_vm_name: text,
  orka_base_image: text,
  orka_image: text,
  orka_cpu_core: integer,
  vcpu_count: integer,
  io_boost: flag,
  net_boost: flag,
  memory: number,
}

const deployFields = {
  ...shared,
  ...disks,
  orka_vm_name: text,
  orka_node_name: text,
  replicas: integer,
  reserved_ports: textList,
  vm_metadata: metadataItems,
}

const maxNameLength = 38
const maxReplicas = 100

const shapeOf = (read: { readonly [Legacy in keyof typeof shared]: string | boolean | undefined }) =>
  Object.fromEntries(Object.entries(sharedNames).map(([name, legacy]) => [name, read[legacy]]))

const problem = (field: string, message: string): ApiError =>
  badRequest([invalidField(field, message)], `Correct ${field}`)

const create: LegacyHandler = async (context) => {
  const read = readLegacyFields(context.fields, createFields, ['orka_vm_name'])
  const { orka_vm_name: name, orka_base_image: base, orka_image: image } = read
  if (name.length > maxNameLength)
    throw problem('orka_vm_name', `orka_vm_name has more than ${maxNameLength} characters`)
  if (base === undefined && image === undefined) throw problem('orka_base_image', 'orka_base_image is missing')
  refuseDisks(read)
  const from = base ?? image ?? ''
  const shape = defined({
    cpu: read.orka_cpu_core ?? read.vcpu_count,
    memory: read.memory,
    netBoost: read.net_boost,
    legacyIO: legacyIoFor(context, from, read.io_boost),
    ...shapeOf(read),
  })
  await context.run(createVmConfig, { body: { name, image: from, ...shape } })
  return { status: 201, message: 'Successfully Created', help: createHelp({ name }, undefined) }
}

/** Only Intel-based VMs can have the old disk devices, which a VM without the boost gets. */
function legacyIoFor({ services }: LegacyContext, image: string, ioBoost: boolean | undefined): true | undefined {
  const architecture = services.collections.images.get('', image)?.value.architecture
  return ioBoost === false && architecture === 'amd64' ? true : undefined
}

const noConfigurations = 'No VM configurations exist'

const configs: LegacyHandler = async (context) => {
  const all = await context.list(listVmConfigs)
  return { configs: all.map(shownConfig), ...(all.length === 0 && { message: noConfigurations }) }
}

/** Answers an unknown name with an empty list: clients check the list and not the status. */
const config: LegacyHandler = async (context) => {
  const found = (await context.list(listVmConfigs)).filter(({ name }) => name === context.params.vmconfig)
  return { configs: found.map(shownConfig) }
}

async function configCalled(context: LegacyContext, name: string): Promise<VmConfig> {
  try {
    return await context.run(getVmConfig, { params: { vmconfig: name } })
  } catch (error) {
    if (!(error instanceof ApiError) || error.options.kind !== 'vmconfigs') throw error
    const what = `${noConfigurations} with the name "${name.slice(0, 100)}": it was not found`
    throw new ApiError('NotFound', what, { ...error.options, hint: 'Create one: POST /resources/vm/create' })
  }
}

/** In 3.0 a VM waits for room. 2.4.x refused it with these messages, which clients look for. */
async function checkRoom(context: LegacyContext, { cpu, type }: VmConfig, nodeName: string | undefined): Promise<void> {
  const nodes = await context.list(listNodes)
  if (nodeName !== undefined && !nodes.some(({ name }) => name === nodeName))
    throw notFound('nodes', nodeName, { hint: 'Call GET /resources/node/list to see all nodes' })
  const ofType = nodes.filter(({ name, architecture }) => (nodeName ?? name) === name && architecture === type)
  // The deployment refuses a missing architecture, with a message on which clients do not wait for room.
  if (ofType.length === 0) return
  const candidates = ofType.filter(({ phase, cordoned }) => phase === 'READY' && !cordoned)
  if (candidates.length > 0 && candidates.every(({ allocatableCpu }) => allocatableCpu < cpu)) throw noRoom(noCpu)
  if (candidates.every(({ availableCpu }) => availableCpu < cpu)) throw noRoom(noNode)
}

const noCpu = 'Requested CPU is not available in the cluster'
const noNode = 'No available nodes with sufficient CPU.'
const noRoom = (message: string): ApiError =>
  new ApiError('Conflict', message, { kind: 'vms', hint: 'Call GET /resources/node/list to see free capacity' })

/** Translates a refusal about cores into the message of 2.4.x. */
function asLegacyRefusal(error: unknown): unknown {
  if (!(error instanceof ApiError) || error.options.causes?.[0]?.field !== 'orka_cpu_core') return error
  return noRoom(error.reason === 'Invalid' ? noCpu : noNode)
}

const deploy: LegacyHandler = async (context) => {
  const read = readLegacyFields(context.fields, deployFields, ['orka_vm_name'])
  const { orka_vm_name: name, orka_node_name: node, reserved_ports: ports, vm_metadata: values } = read
  const replicas = read.replicas || 1
  refuseDisks(read)
  if (replicas > maxReplicas) throw problem('replicas', `replicas is more than ${maxReplicas}`)
  const from = await configCalled(context, name)
  await checkRoom(context, from, node ?? from.node)
  const body = defined({
    vmConfig: name,
    node,
    ...(ports && { reservedPorts: ports.join(',') }),
    metadata: values,
    labels: { [legacyConfigLabel]: name },
    ...shapeOf(read),
  })
  const deployed: Vm[] = []
  const expedite = goneSignal(context.reply)
  try {
    while (deployed.length < replicas) deployed.push(await deployOne(context, name, body, expedite))
  } catch (error) {
    // All or none: a client that asked for three VMs cannot use the id of one.
    for (const { name: vm } of deployed) await context.run(deleteVm, { params: { vm } }).catch(() => undefined)
    throw asLegacyRefusal(error)
  }
  const [first] = deployed as [Vm]
  const answers = deployed.map((vm) => deployment(vm, boostsOf(context.services, vm)))
  return {
    message: replicas > 1 ? `${replicas} of ${replicas} VMs deployed successfully.` : 'Successfully deployed VM',
    help: deployHelp(first),
    ...answers[0],
    ...(replicas > 1 && { replicas: answers }),
  }
}

/** Names the VM after its configuration, with a generated suffix if that name is taken. */
async function deployOne(context: LegacyContext, config: string, body: object, expedite: AbortSignal): Promise<Vm> {
  const prefix = isVmName(config) ? config : `vm-${config}`
  const isTaken = (await context.list(listVms)).some(({ name }) => name === prefix)
  const generated = { name: prefix, shouldGenerateName: true }
  try {
    return await context.run(deployVm, { body: { ...body, ...(isTaken ? generated : { name: prefix }) }, expedite })
  } catch (error) {
    if (isTaken || !(error instanceof ApiError) || error.reason !== 'AlreadyExists') throw error
    return context.run(deployVm, { body: { ...body, ...generated }, expedite })
  }
}

export const deployCalls: LegacyHandlers = {
  'POST /resources/vm/create': create,
  'GET /resources/vm/configs': configs,
  'GET /resources/vm/configs/{vmconfig}': config,
  'POST /resources/vm/deploy': deploy,
}
