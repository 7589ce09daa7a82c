// kill -9 of server and agent at each step of a save, a commit, a copy and a collection, on real disks: what was
// requested happens once, or is said to have failed; every image is whole, the old one or the new one, byte for byte;
// and nothing is left that no image needs.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { Image } from '../../src/api/images/images.ts'
import { writeFileAtomically } from '../../src/platform/files.ts'
import { ClusterRig } from '../support/rigs/cluster-rig.ts'
import { age } from '../support/rigs/content-folder.ts'
import { contentsOf } from '../support/tools/image-contents.ts'

const block = 65_536
let rig: ClusterRig
let first: string

before(async () => {
  rig = await ClusterRig.make('amd64')
  await rig.startAgent()
  const disk = Buffer.alloc(40 * block)
  randomBytes(10 * block).copy(disk, 2 * block)
  first = await rig.upload('base', disk)
  await rig.deploy('demo', 'base')
})
after(async () => {
  await rig[Symbol.asyncDispose]()
})

const memoryOf = (text: string | undefined): RegExpExecArray | null =>
  /^(memory of [0-9a-f-]{36} )\1*$/.exec(text ?? '')

/** It is what was on the disk in that moment, with the memory that went with it. Returns its digest. */
async function isWhole(name: string, truth: Buffer): Promise<string> {
  const { checksum = '' } = await rig.isIn(name, 'Ready')
  const { disk, memory } = await rig.restored(checksum)
  assert.ok(disk.equals(truth), `${name} is not what was on the disk`)
  assert.ok(memoryOf(memory?.toString()), 'its memory is whole')
  return checksum
}

describe('the command line', () => {
  it('the command line says how to look at a save, and follows one to its end', async () => {
    const saved = await rig.svc3('vm', 'save', 'demo', 'first', '-d', 'one')
    assert.equal(saved.code, 0, saved.stderr)
    // The rig's driver is none that the service knows.
    assert.match(
      saved.stderr,
      /^svc3: The memory of VM demo may not be saved: that depends on the driver of its node\..*\n$/,
    )
    assert.match(saved.stdout, /^Saving VM demo as image first\. To follow it: \S*svc3 image list first\n$/)
    const truth = Buffer.from(rig.disks.get('demo') ?? [])
    await isWhole('first', truth)
    const file = path.join(rig.root, 'first.raw')
    assert.equal((await rig.svc3('image', 'download', 'first', '-f', file)).code, 0)
    assert.ok((await fs.readFile(file)).equals(truth), 'what is sent is what is there')
    const followed = await rig.svc3('vm', 'save', 'demo', 'second', '--wait')
    assert.deepEqual([followed.code, followed.stdout], [0, 'Image second is Ready.\n'], followed.stderr)
    assert.match((await rig.svc3('image', 'list', 'first')).stdout, /\nfirst\tone\t2\.5M\tamd64\tReady\n/)
    const deleted = await rig.svc3('image', 'delete', 'first', 'second')
    assert.equal(deleted.code, 0, deleted.stderr)
  })

  it('the command line refuses at once what can never be, and what is not now', async () => {
    for (const [words, code] of [
      [['save', 'demo', '../x'], 2],
      [['save', 'demo'], 2],
      [['save', 'none', 'x'], 5],
      [['commit', 'none'], 5],
      [['save', 'demo', 'base'], 6],
    ] as const)
      assert.equal((await rig.svc3('vm', ...words)).code, code, words.join(' '))
  })
})

/**
 * One piece of work, and a server that dies at each of these on the way to its end: it always gets to the next. What is seen
 * in between is checked, where the next death leaves time to look. The one that is left is to die at `last`.
 */
async function dieAtEach(
  points: readonly string[],
  last: string,
  ask: () => Promise<unknown>,
  meanwhile: (at: string) => Promise<void>,
): Promise<void> {
  // One that has lost many connections in a row takes its time.
  await rig.killAgent()
  await rig.startAgent()
  await ask()
  for (const [index, at] of points.entries()) {
    await rig.died(points[index + 1] ?? last)
    // A caller that did not receive the answer repeats the request.
    if (index === 0) await ask()
    await meanwhile(at)
  }
}

/** The next kill comes right after the write that makes it Ready, so a poll in between may see Ready. */
const isBeforeDeath = (at: string, seen: Image | undefined): boolean =>
  at === 'captures.finish' && seen?.state === 'Ready'

describe('a server that is killed', () => {
  it('a server that is killed at each step of a save goes on with it, and the image is what was on the disk', async () => {
    const truth = await rig.write('demo')
    await rig.restart('captures.save.recorded')
    const body = { imageName: 'saved', description: 'whole' }
    const headers = { 'idempotency-key': 'save' }
    const points = ['captures.save.recorded', 'images.put.write', 'images.put.rename', 'captures.finish']
    await dieAtEach(
      [...points, 'captures.finished'],
      'captures.commit.locked',
      () => rig.ask('POST', '/vms/demo/save', body, headers),
      async (at) => {
        const seen = await rig.ask('GET', '/images/saved')
        if (at === 'captures.finished') assert.ok(seen)
        const isThere = at === 'captures.finished' || isBeforeDeath(at, seen)
        if (seen) assert.deepEqual([seen.state, seen.checksum !== undefined], [isThere ? 'Ready' : 'Updating', isThere])
        // The disk is captured, and the guest resumes.
        if (at === 'images.put.write') await rig.write('demo')
      },
    )
    await isWhole('saved', truth)
    assert.equal((await rig.image('saved')).description, 'whole')
    await rig.isAtRest('demo')
  })

  it('a server that is killed at each step of a commit goes on with it: before its end the image is the old one, then the new one', async () => {
    const old = rig.disks.get('base') ?? assert.fail()
    const truth = await rig.write('demo')
    const headers = { 'idempotency-key': 'commit' }
    await dieAtEach(
      ['captures.commit.locked', 'images.put.rename', 'captures.finish', 'captures.finished'],
      'captures.failed',
      () => rig.ask('POST', '/vms/demo/commit', { description: 'once' }, headers),
      async (at) => {
        const seen = await rig.ask('GET', '/images/base')
        if (at === 'captures.finished') assert.ok(seen)
        const isNew = at === 'captures.finished' || isBeforeDeath(at, seen)
        if (seen) assert.deepEqual([seen.state, seen.checksum === first], [isNew ? 'Ready' : 'Updating', !isNew], at)
        assert.ok((await rig.restored(seen?.checksum ?? first)).disk.equals(isNew ? truth : old), at)
      },
    )
    await isWhole('base', truth)
    assert.equal((await rig.image('base')).description, 'once')
    await rig.isAtRest('demo')
  })

  it('a server that is killed when it has written down that a save failed says so, and nothing of it is left', async () => {
    await rig.deploy('ended', 'saved', 'demo')
    const state = path.join(rig.vmFolder('ended'), 'disk.json')
    // Its agent reads it whenever it looks.
    await writeFileAtomically(
      state,
      (await fs.readFile(state, 'utf8')).replace('"isRunning":true', '"isRunning":false'),
    )
    await rig.ask('POST', '/vms/ended/save', { imageName: 'never' })
    await rig.died('copy.recorded')
    const { errorMessage = '', checksum } = await rig.isIn('never', 'Failed')
    assert.match(errorMessage, /was no longer running/)
    assert.equal(checksum, undefined)
    await rig.isAtRest('demo')
    for (const url of ['/vms/ended', '/images/never']) await rig.call('DELETE', url)
  })

  it('a server that is killed when it has recorded a copy has it, whole', async () => {
    const [body, headers] = [{ name: 'copy' }, { 'idempotency-key': 'copy' }]
    await rig.ask('POST', '/images/saved/copy', body, headers)
    await rig.died()
    await rig.call('POST', '/images/saved/copy', body, headers)
    const [copy, saved] = [await rig.image('copy'), await rig.image('saved')]
    assert.deepEqual([copy.state, copy.checksum], ['Ready', saved.checksum])
    await rig.call('DELETE', '/images/saved')
  })

  it('a server that is killed in the middle of a collection takes nothing that is needed, and frees the rest when it is back', async () => {
    const base = (await rig.image('base')).checksum ?? ''
    const before = await rig.restored(base)
    await rig.call('DELETE', '/images/copy')
    await age(rig.content)
    // It looks when it starts.
    await rig.restart('images.delete')
    await rig.died()
    // The VM stands on the old version, and keeps it.
    await rig.comesToHave([base, first])
    assert.ok((await rig.restored(base)).disk.equals(before.disk))
    assert.ok((await rig.restored(first)).disk.equals(rig.disks.get('base') ?? assert.fail()))
  })
})

describe('an agent that is killed', () => {
  it('an agent that is killed at each step of a commit goes on with it, and the image is what was on the disk', async () => {
    const truth = await rig.write('demo')
    const points = [
      'agent.capture.capture', 'captures.frozen', 'captures.pack.layer', 'captures.packed', 'captures.deliver.put',
      'captures.deliver.finish', 'captures.delivered', 'captures.released',
    ] // biome-ignore format: a list to read
    await rig.killAgent()
    await rig.startAgent(points[0])
    await rig.call('POST', '/vms/demo/commit', {})
    for (const [index] of points.entries()) await rig.agentDied(points[index + 1])
    const checksum = await isWhole('base', truth)
    await rig.isAtRest('demo')
    // And a VM of it starts from these bytes.
    await rig.call('DELETE', '/vms/demo')
    await rig.deploy('next', 'base', 'demo')
    assert.ok((await rig.imageOnNode(checksum)).equals(truth))
    await rig.hasOnly(contentsOf(await rig.image('base')))
  })
})
