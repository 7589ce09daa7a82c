// The imagecache commands against the real API, with a node whose reports the tests choose.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { run } from '../../test/support/rigs/cli-host.ts'
import { startService, type TestService } from '../../test/support/rigs/service.ts'
import { addImage, type NodeStandIn, startNode } from '../../test/support/stand-ins/node.ts'

let service: TestService
let node: NodeStandIn
before(async () => {
  service = await startService()
  await addImage(service, 'intel', 'amd64')
  await addImage(service, 'silicon', 'arm64')
  node = await startNode(service, { name: 'xeon-1', report: { cache: [] } })
  await service.listen()
})
after(() => service[Symbol.asyncDispose]())

const svc3 = (line: string, onWrite?: (written: { stderr: string }) => void) =>
  run(line.split(' '), {
    env: { SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.devToken },
    ...(onWrite && { onWrite }),
  })
const key = 'recipe:intel'

describe('imagecache', () => {
  it('imagecache add --wait shows the progress, and ends when the image is on the nodes', async () => {
    const [isWaiting, isFetching] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const done = svc3('ic add intel --all --wait', ({ stderr }) => {
      if (stderr.includes('xeon-1: waiting')) isWaiting.resolve()
      if (stderr.includes('xeon-1: fetching')) isFetching.resolve()
    })
    await isWaiting.promise
    await node.report({ cache: [{ key, state: 'Fetching', percent: 50 }] })
    await isFetching.promise
    await node.report({ cache: [{ key, state: 'Ready', bytes: 2 ** 30, usedAt: '2026-11-15T08:00:00Z' }] })
    const { exitCode, stdout, stderr } = await done
    assert.equal(stdout, 'NODE\tRESULT\tMESSAGE\nxeon-1\tAccepted\tFetching\n')
    assert.deepEqual(stderr.split('\n').slice(0, -1), [
      'svc3: node xeon-1: waiting for image intel',
      'svc3: node xeon-1: fetching image intel',
      'svc3: Image intel is on xeon-1',
    ])
    assert.equal(exitCode, 0)
  })

  it('imagecache list and info show the nodes of each image', async () => {
    assert.equal((await svc3('imagecache list')).stdout.split('\n')[1], 'intel\tamd64\t1G\t1/1\txeon-1')
    assert.equal((await svc3('ic list -o wide')).stdout.split('\n')[1], 'intel\tamd64\t1G\t1/1\txeon-1\txeon-1\t')
    const info = await svc3('ic info intel')
    assert.equal(info.stdout.split('\n')[1], 'xeon-1\tReady\t1.0G\tyes\t2026-11-15T08:00:00Z')
    const [copy] = JSON.parse((await svc3('ic info intel -o json')).stdout)
    assert.deepEqual([copy.bytes, copy.pinned], [2 ** 30, true])
    assert.equal((await svc3('ic list silicon')).exitCode, 5)
  })

  it('imagecache add --wait fails with the reason of the node', async () => {
    await node.report({ cache: [{ key, state: 'Failed', problem: 'there is no room' }] })
    const { exitCode, stderr } = await svc3('ic add intel --nodes xeon-1 --wait')
    assert.equal(exitCode, 1)
    assert.match(stderr, /Node xeon-1 could not fetch image intel: there is no room\n/)
  })

  it('imagecache add exits 1 when a node refuses, 2 when none is named; remove exits 5 for no such image', async () => {
    const wrong = await svc3('ic add silicon --nodes xeon-1,none')
    assert.equal(wrong.exitCode, 1)
    assert.match(
      wrong.stdout,
      /none\tNotFound\t.*\nxeon-1\tWrongArchitecture\tThe node runs amd64 VMs, the image is arm64/,
    )
    for (const words of ['', ' --all --nodes xeon-1', ' --tags a --nodes xeon-1'])
      assert.equal((await svc3(`ic add intel${words}`)).exitCode, 2, words)
    assert.equal((await svc3('ic remove nothing --all')).exitCode, 5)
    const removed = await svc3('ic remove intel --nodes xeon-1')
    assert.deepEqual([removed.exitCode, removed.stdout.split('\n')[1]], [0, 'xeon-1\tAccepted\tRemoving'])
  })
})

it('images may have names that begin with a period or, after --, with a dash', async () => {
  for (const name of ['.img', '-img']) await addImage(service, name, 'amd64')
  const listed = await svc3('image list -- .img -img')
  assert.deepEqual([listed.exitCode, listed.stdout.split('\n').length], [0, 4])
  const copied = await svc3('image copy -- -img .-copy')
  assert.deepEqual([copied.exitCode, copied.stdout], [0, 'Image .-copy created as a copy of -img.\n'])
  assert.equal((await svc3('image delete --yes -- -img .-copy')).exitCode, 0)
})

it('imagecache list and info find an image of a registry by its tag, and add passes the reference on', async () => {
  const reference = `ghcr.io/team/sonoma@sha256:${'a'.repeat(64)}`
  const pulled = { reference, names: ['ghcr.io/team/sonoma'], sizeBytes: 2 ** 30 }
  await node.report({ cache: [{ key: `sha256:${'b'.repeat(64)}`, state: 'Ready', bytes: 2 ** 20, pulled }] })
  for (const name of ['ghcr.io/team/sonoma', 'ghcr.io/team/sonoma:latest']) {
    assert.equal(
      (await svc3(`ic list ${name}`)).stdout.split('\n')[1],
      'ghcr.io/team/sonoma:latest\tamd64\t1G\t1/1\txeon-1',
    )
    assert.match((await svc3(`ic info ${name}`)).stdout, /\nxeon-1\tReady\t1\.0M\tno\t/)
  }
  assert.equal((await svc3('ic info ghcr.io/team/sonoma:v2')).exitCode, 5)
  const refused = await svc3('ic add ghcr.io/team//sonoma --all')
  assert.match(refused.stderr, /has an empty part between slashes/)
})
