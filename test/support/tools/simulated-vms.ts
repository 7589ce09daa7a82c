// The uids of simulated VMs on a node's disk.
import path from 'node:path'
import { KeyedLog } from '../../../src/platform/keyed-log.ts'

export const simulatedVms = (nodeFolder: string): readonly string[] => [
  ...new KeyedLog(path.join(nodeFolder, 'vms'), 'svc3').keys(),
]
