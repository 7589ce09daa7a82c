// Renders records of 3.0 in the shapes of 2.4.x. Old clients are strict about types: ports and memory are text, cores
// are integers.
import type { Image } from '../../api/images/images.ts'
import type { Node } from '../../api/nodes/nodes.ts'
import type { VmConfig } from '../../api/vms/vm-configs.ts'
import type { Vm } from '../../api/vms/vms.ts'
import type { Collections } from '../../store/records/collections.ts'

/** The label of a VM with the configuration that the gateway deployed it from. */
export const legacyConfigLabel = 'legacy.svc3/config'

/** In 2.4.x, a VM has the name of its configuration, and several VMs may have the same name. */
export const configNameOf = ({ name, labels }: Pick<Vm, 'name' | 'labels'>): string => labels[legacyConfigLabel] ?? name

const hasIoBoost = (shape: { readonly legacyIO: boolean } | undefined): boolean => shape?.legacyIO !== true

type Boosts = ReturnType<typeof boostsOf>

/** Reads the VM itself, because its configuration may have changed since the deployment. */
export function boostsOf({ collections }: { readonly collections: Collections }, { namespace, name }: Vm) {
  const shape = collections.vms.get(namespace, name)?.value.shape
  return { io_boost: hasIoBoost(shape), net_boost: shape?.netBoost ?? true }
}

const portText = (port: number | undefined): string => (port === undefined ? 'N/A' : String(port))

/** `7.50Gi` → `7.5G`. */
const memoryText = (memory: string): string => {
  const gibibytes = Number.parseFloat(memory)
  return Number.isNaN(gibibytes) ? 'automatic' : `${gibibytes}G`
}

const gpuText = (count: number): string => (count === 0 ? 'N/A' : String(count))

const placing = (config: VmConfig | undefined) => ({
  configuration_template: 'default',
  tag: config?.tag ?? '',
  tag_required: config?.tagRequired ?? false,
})

/** Clients find the ports of SSH, VNC and screen sharing in this list, as integers. */
const openPorts = ({ vnc, screenshare, ssh, reservedPorts }: Vm) =>
  [
    { host: vnc, guest: 5_999, protocol: 'tcp' },
    { host: screenshare, guest: 5_900, protocol: 'tcp' },
    { host: ssh, guest: 22, protocol: 'tcp' },
    ...reservedPorts.map(({ nodePort, vmPort, protocol }) => ({ host: nodePort, guest: vmPort, protocol })),
  ].flatMap(({ host, guest, protocol }) =>
    host === undefined ? [] : [{ host_port: host, guest_port: guest, protocol: protocol.toUpperCase() }],
  )

export function deployedVm(
  vm: Vm,
  facts: { config: VmConfig | undefined; node: Node | undefined; replicas: number; boosts: Boosts },
) {
  const { config, node, replicas, boosts } = facts
  return {
    owner: vm.owner,
    virtual_machine_name: configNameOf(vm),
    virtual_machine_id: vm.uid,
    node_location: vm.node ?? 'N/A',
    node_status: node === undefined || node.phase === 'READY' ? 'UP' : 'DOWN',
    virtual_machine_ip: vm.ip ?? 'N/A',
    vnc_port: portText(vm.vnc),
    screen_sharing_port: portText(vm.screenshare),
    ssh_port: portText(vm.ssh),
    cpu: vm.cpu,
    vcpu: vm.cpu,
    gpu: vm.gpuPassthrough ? '1' : 'N/A',
    RAM: memoryText(vm.memory),
    base_image: vm.image,
    image: configNameOf(vm),
    vm_status: vm.powerState,
    ...boosts,
    use_saved_state: false,
    reserved_ports: openPorts(vm),
    creation_timestamp: vm.deployDate,
    creationTimestamp: vm.deployDate,
    ...placing(config),
    replicas,
  }
}

export const notDeployedVm = (config: VmConfig) => ({
  virtual_machine_name: config.name,
  vm_deployment_status: 'Not Deployed',
  owner: config.owner,
  cpu: config.cpu,
  vcpu: config.cpu,
  RAM: config.memory === 0 ? 'automatic' : `${config.memory}G`,
  base_image: config.image,
  image: config.name,
  io_boost: hasIoBoost(config),
  net_boost: config.netBoost,
  use_saved_state: false,
  gpu_passthrough: config.gpuPassthrough,
  ...placing(config),
})

export const shownConfig = (config: VmConfig) => ({
  owner: config.owner,
  orka_vm_name: config.name,
  orka_base_image: config.image,
  orka_cpu_core: config.cpu,
  vcpu_count: config.cpu,
  iso_image: config.iso ?? 'None',
  attached_disk: 'None',
  vnc_console: config.vncConsole,
  io_boost: hasIoBoost(config),
  net_boost: config.netBoost,
  use_saved_state: false,
  gpu_passthrough: config.gpuPassthrough,
  system_serial: config.systemSerial ?? 'N/A',
  tag: config.tag ?? '',
  tag_required: config.tagRequired,
  scheduler: config.scheduler,
  memory: config.memory === 0 ? 'automatic' : config.memory,
})

/** At least one client reads the name of its VM from this text. */
export const createHelp = ({ name }: Pick<VmConfig, 'name'>, node: string | undefined) => ({
  deploy_virtual_machine: 'To deploy this VM, use POST /resources/vm/deploy',
  required_request_data_for_deploy: { orka_vm_name: name, orka_node_name: node ?? '' },
})

export const deployHelp = (vm: Vm) => ({
  start_virtual_machine: 'To start this VM, use POST /resources/vm/exec/start',
  stop_virtual_machine: 'To stop this VM, use POST /resources/vm/exec/stop',
  resume_virtual_machine: 'To resume this VM, use POST /resources/vm/exec/resume',
  suspend_virtual_machine: 'To suspend this VM, use POST /resources/vm/exec/suspend',
  data_for_virtual_machine_exec_tasks: { orka_vm_name: configNameOf(vm) },
  virtual_machine_vnc: vm.vnc === undefined ? 'N/A' : `Connect by VNC to ${vm.ip}:${vm.vnc}`,
})

export const deployment = (vm: Vm, boosts: Boosts) => ({
  ram: memoryText(vm.memory),
  vcpu: String(vm.cpu),
  host_cpu: String(vm.cpu),
  ip: vm.ip ?? 'N/A',
  ssh_port: portText(vm.ssh),
  screen_share_port: portText(vm.screenshare),
  vnc_port: portText(vm.vnc),
  vm_id: vm.uid,
  port_warnings: vm.portWarnings === undefined ? [] : [vm.portWarnings],
  ...boosts,
  use_saved_state: false,
  gpu_passthrough: vm.gpuPassthrough,
})

export const shownNode = (node: Node) => ({
  name: node.name,
  host_name: node.name,
  address: node.nodeIP,
  hostIP: node.nodeIP,
  available_cpu: node.availableCpu,
  allocatable_cpu: node.allocatableCpu,
  available_gpu: gpuText(node.availableGpu),
  allocatable_gpu: gpuText(node.allocatableGpu),
  available_memory: node.availableMemory,
  total_cpu: node.allocatableCpu,
  total_memory: node.allocatableMemory,
  node_type: node.nodeType,
  state: node.phase,
  orka_tags: node.orkaTags,
})

export const legacyImage = (image: Image, addedAt: string) => ({
  image: image.name,
  image_size: image.size,
  modified: image.lastUpdatedTimestamp,
  date_added: addedAt,
  owner: 'all',
})

export const shownIso = (iso: Image) => ({
  iso: iso.name,
  iso_size: iso.size,
  modified: iso.lastUpdatedTimestamp,
})
