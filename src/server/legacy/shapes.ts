// Renders records of 3.0 in the shapes of 2.4.x. Old clients are strict about types: ports and memory are text, cores
// are integers.
import type { Image } from '../../api/images/images.ts'
import type { Node } from '../../api/nodes/nodes.ts'
import type { VmConfig } from '../../api/vms/vm-configs.ts'
import type { Vm } from '../../api/vms/vms.ts'
import type { Collections } from '../../store/records/collections.ts'

/** On a VM that the gateway deployed: the configuration whose name it goes by. */
export const configLabel = 'legacy.svc3/config'

/** In 2.4.x a VM goes by the name of its configuration, and several may. */
export const configNameOf = ({ name, labels }: Pick<Vm, 'name' | 'labels'>): string => labels[configLabel] ?? name

/** Whether a configuration or what is deployed has the boost: everything has but what has the old disk devices. */
const hasIoBoost = (shape: { readonly legacyIO: boolean } | undefined): boolean => shape?.legacyIO !== true

/** Of a VM: its configuration may be another by now. */
export const ioBoostOf = ({ collections }: { readonly collections: Collections }, { namespace, name }: Vm): boolean =>
  hasIoBoost(collections.vms.get(namespace, name)?.value.shape)

const portText = (port: number | undefined): string => (port === undefined ? 'N/A' : String(port))

/** `7.50Gi` → `7.5G`. */
const memoryText = (memory: string): string => {
  const gibibytes = Number.parseFloat(memory)
  return Number.isNaN(gibibytes) ? 'automatic' : `${gibibytes}G`
}

const gpuText = (count: number): string => (count === 0 ? 'N/A' : String(count))

/** What a configuration tells about a VM that is deployed from it, or that is not. */
const placing = (config: VmConfig | undefined) => ({
  configuration_template: 'default',
  tag: config?.tag ?? '',
  tag_required: config?.tagRequired ?? false,
})

export function deployedVm(
  vm: Vm,
  facts: { config: VmConfig | undefined; node: Node | undefined; replicas: number; ioBoost: boolean },
) {
  const { config, node, replicas, ioBoost } = facts
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
    image: vm.image,
    vm_status: vm.powerState,
    io_boost: ioBoost,
    use_saved_state: false,
    reserved_ports: vm.reservedPorts.map(({ nodePort, vmPort, protocol }) => ({
      host_port: String(nodePort),
      guest_port: String(vmPort),
      protocol,
    })),
    creation_timestamp: vm.deployDate,
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
  base_image: config.image,
  image: config.image,
  io_boost: hasIoBoost(config),
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

/** What a deployment answers. */
export const deployment = (vm: Vm, ioBoost: boolean) => ({
  ram: memoryText(vm.memory),
  vcpu: String(vm.cpu),
  host_cpu: String(vm.cpu),
  ip: vm.ip ?? 'N/A',
  ssh_port: portText(vm.ssh),
  screen_share_port: portText(vm.screenshare),
  vnc_port: portText(vm.vnc),
  vm_id: vm.uid,
  port_warnings: vm.portWarnings === undefined ? [] : [vm.portWarnings],
  io_boost: ioBoost,
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

export const shownImage = (image: Image, addedAt: string) => ({
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
