// Save, commit and the record of a VM say at once whether memory is saved.
import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import { startService, type TestService } from '../../../../test/support/rigs/service.ts'
import { addImage, startNode, startScheduler } from '../../../../test/support/stand-ins/node.ts'
import { openImageContents } from '../../images/contents.ts'

const here = '/api/v1/namespaces/svc-default'
const uefi = { saved: false, reason: 'it boots by UEFI, whose variables are a file of their own' }
const unknown = /^that depends on the firmware/
let service: TestService
let scheduler: AsyncDisposable

before(async () => {
  service = await startService()
  scheduler = startScheduler(service)
  const report = { driver: 'qemu', driverVersion: 'QEMU 7.2.9 (kvm, sealed network)', os: 'Linux 6.1', cpu: 100 }
  await startNode(service, { name: 'intel', report: { ...report, architecture: 'amd64' } })
  await startNode(service, { name: 'arm', report: { ...report, architecture: 'arm64' } })
})
after(async () => {
  await scheduler[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

const post = async (path: string, body: object = {}) => (await service.call('POST', `${here}/${path}`, { body })).body

/** An image whose manifest has this firmware; nothing of its content is in the store if `content` is given. */
async function add(name: string, architecture: 'amd64' | 'arm64', firmware?: 'bios' | 'uefi', content?: string) {
  await addImage(service, name, architecture)
  const { collections, content: store } = service.services
  const made = await openImageContents(store).empty(architecture, 2 ** 20, { firmware })
  await collections.images.change(collections.images.key('', name), (record) => {
    const { recipe: _, ...rest } = record ?? assert.fail()
    return { ...rest, content: content ?? made.content }
  })
}

it('save, commit and the record of a VM say at once that memory is saved, or why not, by the firmware of its image', async () => {
  await addImage(service, 'built', 'arm64')
  await add('bios', 'amd64', 'bios')
  await add('usual', 'amd64')
  await add('uefi', 'amd64', 'uefi')
  await add('usual-arm', 'arm64')
  for (const [image, memory] of [
    ['built', { saved: true }],
    ['bios', { saved: true }],
    ['usual', { saved: true }],
    ['uefi', uefi],
    ['usual-arm', uefi],
  ] as const) {
    const name = `vm-${image}`
    await post('vms', { name, image, cpu: 1 })
    const shown = (await service.call('GET', `${here}/vms/${name}`)).body
    assert.deepEqual([shown.powerState, shown.memorySave], ['running', memory], image)
    assert.deepEqual((await post(`vms/${name}/save`, { imageName: `saved-${image}` })).memory, memory, image)
  }
  const committed = await post('vms/vm-uefi/commit')
  assert.deepEqual([committed.state, committed.memory], ['Updating', uefi], JSON.stringify(committed))
  assert.equal((await service.call('GET', `${here}/images/saved-uefi`)).body.memory, undefined)
})

it('the record of a VM says what the memory depends on if its image cannot be read, and nothing unless it runs', async () => {
  await add('lost', 'amd64', 'bios', `sha256:${'0'.repeat(64)}`)
  await post('vms', { name: 'unread', image: 'lost', cpu: 1 })
  const { memorySave } = (await service.call('GET', `${here}/vms/unread`)).body
  assert.equal(memorySave.saved, undefined)
  assert.match(memorySave.reason, unknown)
  await post('vms/unread/exec', { command: 'stop' })
  assert.equal((await service.call('GET', `${here}/vms/unread`)).body.memorySave, undefined)
})
