// The table columns of VM configurations.
import type { VmConfig } from '../../../api/vms/vm-configs.ts'
import { memorySize } from '../../../rules/sizes.ts'
import type { Column } from '../../output/output.ts'

export const columns: readonly Column<VmConfig>[] = [
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
