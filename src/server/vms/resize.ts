// Grows the disk of a VM. The password for growing its file system must reach the server with the node's stream before
// the record is written, because the desired state is sent at once and passwords are never stored.
import type { VmRecord } from '../../store/records/fleet-records.ts'
import type { Entry } from '../../store/store.ts'
import { existingIn } from '../gate/existing.ts'
import type { GrowthCredentials } from '../nodes/desired.ts'
import type { NodeRelay } from '../nodes/node-relay.ts'
import { changePower, type VmPath } from './actions.ts'
import type { AwaitServices } from './await-deployment.ts'
import { isRepeated } from './captures.ts'
import { checkSize, type ResizeInput } from './sizes.ts'

export interface ResizeServices extends AwaitServices {
  readonly nodeRelay: NodeRelay
  readonly growth: GrowthCredentials
}

interface Resized {
  readonly entry: Entry<VmRecord>
  /** The file system in the guest grows as well. */
  readonly hasLogin: boolean
}

/** Another change took the generation for which the password was sent ahead. */
class GenerationTaken extends Error {
  override readonly name = 'GenerationTaken'
}

export async function resizeDisk(
  services: ResizeServices,
  path: VmPath,
  input: ResizeInput,
  requestKey: string | undefined,
): Promise<Resized> {
  const { collections, nodeRelay, growth } = services
  const { size, user, password } = input
  const existing = (): VmRecord => existingIn(collections.vms, 'vms')(path.namespace, path.vm).value
  const before = existing()
  if (!isRepeated(before, requestKey))
    checkSize(before, input, collections.nodes.get('', before.place?.node ?? '')?.value)
  const login = user === undefined || password === undefined ? undefined : { user, password }
  for (;;) {
    const { desired, uid, place } = existing()
    const next = { generation: desired.generation + 1, ...login }
    const isSentAhead = login !== undefined && (await nodeRelay.grow(place?.node ?? '', uid, { ...next, ...login }))
    let generation: number | undefined
    const prepare = (record: VmRecord): VmRecord => {
      generation = record.desired.generation
      if (isSentAhead && generation !== next.generation) throw new GenerationTaken()
      if (login) growth.set(record.uid, { generation, ...login })
      return record
    }
    try {
      const request = { action: 'resize', requestKey, desired: () => ({ diskGb: size }), prepare } as const
      return { entry: await changePower(services, path, request), hasLogin: login !== undefined }
    } catch (error) {
      if (!(error instanceof GenerationTaken)) throw error
    } finally {
      if (growth.get(before.uid)?.generation === generation) growth.delete(before.uid)
    }
  }
}
