// Usage in the API: of existing VMs, of VMs that just ended, and of stored days.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { startService } from '../../../../test/support/rigs/service.ts'
import { addImage, startNode, startScheduler } from '../../../../test/support/stand-ins/node.ts'
import { eventually } from '../../../../test/support/tools/eventually.ts'
import type { Usage } from '../../../api/service/usage.ts'
import { usageCsv } from '../../../api/service/usage-csv.ts'
import { countUsage } from '../../../controllers/count-usage.ts'

it('usage counts living and deleted VMs by owner, the same before and after the end is added to its day', async () => {
  await using service = await startService()
  await using _ = startScheduler(service)
  await addImage(service, 'intel', 'amd64')
  await startNode(service)
  const here = '/api/v1/namespaces/svc-default'
  const usage = async (query = ''): Promise<readonly Usage[]> =>
    (await service.call('GET', `${here}/usage${query}`)).body.items
  assert.deepEqual(await usage(), [])
  for (const name of ['a', 'b']) await service.call('POST', `${here}/vms`, { body: { image: 'intel', name, cpu: 2 } })
  const [living] = await usage()
  assert.equal(living?.vms, 2)
  await service.call('DELETE', `${here}/vms/a`)
  await service.call('DELETE', `${here}/vms/b`)
  await eventually(async () => assert.equal(service.services.collections.vms.list().length, 0))
  const ended = await usage()
  assert.deepEqual([ended.length, ended[0]?.vms], [1, 2])
  assert.ok((ended[0]?.coreHours ?? 0) <= 2 * (ended[0]?.vmHours ?? 0) + 0.002)
  const loop = countUsage(service.services)
  await eventually(async () => assert.equal(service.services.collections.vmEnds.list().length, 0))
  await loop.stop()
  assert.deepEqual(await usage(), ended)
  assert.deepEqual(await usage('?to=2020-01-31'), [])
  for (const query of ['?from=2026-02-31', '?from=yesterday', '?to=x'])
    for (const path of ['usage', 'usage/csv'])
      assert.equal((await service.call('GET', `${here}/${path}${query}`)).status, 400, path + query)
  const csv = await service.call('GET', `${here}/usage/csv`)
  assert.deepEqual([csv.status, csv.text], [200, usageCsv(ended)])
  assert.match(csv.text, /^day,namespace,owner,vms,.*\r\n\d{4}-\d\d-\d\d,svc-default,admin@example\.com,2,/)
})

it('usage of an earlier namespace of the same name is shown only to administrators', async () => {
  await using service = await startService()
  const { usage } = service.services.collections
  const here = '/api/v1/namespaces/svc-ios'
  await service.call('POST', '/api/v1/namespaces', { body: { name: 'svc-ios' } })
  await service.call('POST', `${here}/rolebindings/svc-dev/subjects/add`, { body: { users: ['dev@example.com'] } })
  const [made, before] = ['2026-11-15', '2026-11-14']
  for (const [day, owner] of [
    [made, 'dev@example.com'],
    [before, 'ana@example.com'],
  ] as const)
    await usage.create('', `${day}/svc-ios`, {
      day,
      namespace: 'svc-ios',
      owners: { [owner]: { vms: 1, vmMs: 1, coreMs: 1, queueMs: 1 } },
      counted: {},
    })
  const days = async (token: string, query = ''): Promise<string[]> => {
    const { status, body, text } = await service.call('GET', `${here}/usage${query}`, { token })
    assert.equal(status, 200, text)
    const csv = await service.call('GET', `${here}/usage/csv${query}`, { token })
    assert.equal(csv.text.includes('ana@example.com'), text.includes('ana@example.com'))
    return body.items.map(({ day }: Usage) => day)
  }
  assert.deepEqual(await days(service.devToken), [made])
  assert.deepEqual(await days(service.devToken, '?from=2026-01-01'), [made])
  assert.deepEqual(await days(service.adminToken), [made, before])
})
