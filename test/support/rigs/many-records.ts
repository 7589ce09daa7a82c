// A fleet as records in a test service's store: a thousand nodes and ten thousand VMs take a second. Pages and watches are
// real.
import { nodeRecord, placedVm } from '../../../bench/records.ts'
import type { VmRecord } from '../../../src/store/records/fleet-records.ts'
import type { TestService } from './service.ts'

interface ManyRecords {
  readonly nodes: number
  readonly vmsOfEach: number
  /** Changes some of the records. */
  readonly change?: (vm: VmRecord, index: number) => VmRecord
}

export async function addManyRecords(service: TestService, { nodes, vmsOfEach, change }: ManyRecords): Promise<void> {
  const { collections } = service.services
  const createdAt = new Date(service.clock.nowMs - 3_600_000).toISOString()
  for (let n = 0; n < nodes; n++) {
    const record = nodeRecord(n, vmsOfEach + 2, `key-${n}`)
    const vms = Array.from({ length: vmsOfEach }, (_, nth) => placedVm(n * vmsOfEach + nth, record, nth))
    await collections.nodes.create('', record.name, { ...record, createdAt })
    for (const [nth, vm] of vms.entries()) {
      const made = { ...vm, createdAt }
      await collections.vms.create(vm.namespace, vm.name, change?.(made, n * vmsOfEach + nth) ?? made)
    }
  }
}
