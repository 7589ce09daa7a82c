// Which simulated VMs a node has on its disk, by uid.
import path from 'node:path'
import { KeyedLog } from '../../../src/platform/keyed-log.ts'

export const simulatedVms = (nodeFolder: string): readonly string[] => [
  ...new KeyedLog(path.join(nodeFolder, 'vms'), 'svc3').keys(),
]
