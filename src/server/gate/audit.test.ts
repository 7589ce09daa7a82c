// Events identify their object by uid, not only by name.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { startService } from '../../../test/support/rigs/service.ts'
import { addImage, startNode, startScheduler } from '../../../test/support/stand-ins/node.ts'
import type { Vm } from '../../api/vms/vms.ts'

it('all events about a VM, also its deletion, have its uid, and those of a later VM of the same name another one', async () => {
  await using service = await startService()
  await using _ = startScheduler(service)
  await addImage(service, 'intel', 'amd64')
  await startNode(service)
  const vms = '/api/v1/namespaces/svc-default/vms'
  const deploy = async (): Promise<Vm> =>
    (await service.call('POST', vms, { body: { image: 'intel', name: 'demo', cpu: 1 } })).body
  const reasonsOf = async (uid: string): Promise<string[]> => {
    const selector = encodeURIComponent(`involved.uid=${uid}`)
    const { body } = await service.call('GET', `/api/v1/namespaces/svc-default/events?fieldSelector=${selector}`)
    return body.items.map(({ reason }: { reason: string }) => reason)
  }
  const first = await deploy()
  await service.call('DELETE', `${vms}/demo`)
  const second = await deploy()
  assert.notEqual(first.uid, second.uid)
  assert.deepEqual(await reasonsOf(first.uid), ['DeployVm', 'DeleteVm'])
  assert.deepEqual(await reasonsOf(second.uid), ['DeployVm'])
  const { placedAt = '', startedAt = '', requestedAt = '' } = second.timeline ?? {}
  assert.ok(requestedAt !== '' && requestedAt <= placedAt && placedAt <= startedAt, JSON.stringify(second.timeline))
})
