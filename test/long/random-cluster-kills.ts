// Server and agent, killed again and again while VMs are saved and committed, with real disks: in the end each image is what
// was on the disk when it was asked for, and the store has nothing else.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { ClusterRig } from '../support/rigs/cluster-rig.ts'
import { eventually } from '../support/tools/eventually.ts'

const block = 65_536
const patienceMs = 120_000
const pause = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds))

interface Expected {
  readonly image: string
  readonly disk: Buffer
}

interface Killed {
  readonly server: number
  readonly agent: number
  readonly saves: number
  readonly commits: number
}

export async function killClusterAtRandom(kills: number): Promise<Killed> {
  await using rig = await ClusterRig.make('arm64')
  await rig.startAgent()
  const disk = Buffer.alloc(40 * block)
  randomBytes(10 * block).copy(disk, 2 * block)
  const first = await rig.upload('base', disk)
  await rig.deploy('a', 'base')
  const count = { server: 0, agent: 0, saves: 0, commits: 0 }
  const saved: Expected[] = []
  let committed: Expected | undefined

  /** Whoever is killed meanwhile: the same request again, until it is answered. */
  const persist = async (url: string, body: object, key: string): Promise<void> =>
    eventually(async () => {
      const answer = await rig.server.call('POST', `/api/v1/namespaces/svc-default${url}`, body, {
        'idempotency-key': key,
      })
      assert.equal(answer.status, 202, JSON.stringify(answer.body))
    }, patienceMs)

  const killOne = async (): Promise<void> => {
    await pause(Math.random() * 400)
    if (Math.random() < 0.5) {
      count.agent += 1
      await rig.killAgent()
      await rig.startAgent()
    } else {
      count.server += 1
      await rig.server.kill('SIGKILL')
      await rig.start()
    }
  }

  for (let round = 1; count.server + count.agent < kills; round++) {
    const truth = await rig.write('a')
    const isCommit = round % 3 === 0
    // One commit at a time; the one before may still be on its way.
    if (isCommit) await rig.isIn('base', 'Ready')
    const image = isCommit ? 'base' : `saved-${round}`
    const url = `/vms/a/${isCommit ? 'commit' : 'save'}`
    const asked = persist(url, isCommit ? {} : { imageName: image }, `round-${round}`)
    for (let lives = 0; lives < 4; lives++) await killOne()
    await asked
    if (isCommit) {
      committed = { image, disk: truth }
      count.commits += 1
    } else {
      saved.push({ image, disk: truth })
      count.saves += 1
    }
    // Left in peace until it is frozen: the disk must not be written to before. It may be on its way long after.
    await eventually(async () => assert.equal((await rig.vm('a')).operation, undefined), patienceMs)
    if (round % 10 === 0) await check(saved.splice(0, 4))
  }
  await check(saved)
  const { checksum: base } = await rig.isIn('base', 'Ready')
  if (committed) assert.ok((await rig.restored(base)).disk.equals(committed.disk), 'the last commit')
  await rig.isAtRest('a')
  await rig.hasOnly([base, first])
  return count

  async function check(expected: readonly Expected[]): Promise<void> {
    for (const { image, disk: truth } of expected) {
      const { checksum } = await rig.isIn(image, 'Ready')
      assert.ok((await rig.restored(checksum)).disk.equals(truth), `${image} is not what was on the disk`)
      await rig.call('DELETE', `/images/${image}`)
    }
  }
}
