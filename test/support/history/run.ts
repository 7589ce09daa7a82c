// Makes a history: clients work on a service while faults happen, all determined by a seed; then the checker judges it. A
// violation is reported with the seed and the file of the history.
import assert from 'node:assert/strict'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import os from 'node:os'
import path from 'node:path'
import { checkHistory, toldOf } from './check.ts'
import { HistoryClients } from './clients.ts'
import { HistoryCluster, type StoreKind } from './cluster.ts'
import { historyImage, historyNode } from './collections.ts'
import { nextStep, runStep, textOfStep } from './faults.ts'
import { type HistoryRecord, writeHistory } from './history.ts'
import { type Random, seeded } from './random.ts'

interface Made {
  readonly operations: number
  readonly acknowledged: number
  readonly unknown: number
  readonly faults: number
}

interface Recording {
  readonly cluster: HistoryCluster
  readonly clients: HistoryClients
  readonly random: Random
  readonly note: (text: string) => void
}

/** SVC3_HISTORY_SEED repeats the faults and requests of a run. */
const seedOf = (kind: StoreKind): string => process.env.SVC3_HISTORY_SEED ?? `${kind}-${randomBytes(4).toString('hex')}`
/** SVC3_HISTORY_SECONDS replaces the duration. */
export const historySeconds = (usual: number): number => Number(process.env.SVC3_HISTORY_SECONDS ?? usual)

/** Random faults for the given time. */
export const makeHistory = (kind: StoreKind, seconds: number, tell: (text: string) => void): Promise<Made> =>
  judgeHistory(kind, tell, async ({ cluster, clients, random, note }) => {
    const plan = random.named('faults')
    const endMs = performance.now() + 1_000 * seconds
    let faults = 0
    while (performance.now() < endMs && !clients.hasFailed) {
      const step = nextStep(plan, kind)
      note(textOfStep(step))
      await runStep(cluster, step)
      faults += step.faults.length
    }
    return faults
  })

/** `disturb` may do anything to the service while clients work, and leaves it healthy. Returns the number of faults. */
export async function judgeHistory(
  kind: StoreKind,
  tell: (text: string) => void,
  disturb: (recording: Recording) => Promise<number>,
): Promise<Made> {
  const seed = seedOf(kind)
  tell(`SVC3_HISTORY_SEED=${seed}, on ${kind}`)
  const records: HistoryRecord[] = []
  try {
    const faults = await record(kind, seed, records, disturb)
    const violations = checkHistory(records)
    assert.ok(violations.length === 0, violations.map(toldOf).join('\n').slice(0, 20_000))
    const operations = records.filter((each) => each.type === 'operation')
    const count = (outcome: string): number => operations.filter((each) => each.outcome === outcome).length
    return { operations: operations.length, acknowledged: count('ok'), unknown: count('unknown'), faults }
  } catch (error) {
    const file = path.join(os.tmpdir(), `svc3-history-${seed}.jsonl`)
    writeHistory(file, records)
    tell(`SVC3_HISTORY_SEED=${seed} runs it again; node test/support/history/check.ts ${file} judges it again`)
    throw error
  }
}

async function record(
  kind: StoreKind,
  seed: string,
  records: HistoryRecord[],
  disturb: (recording: Recording) => Promise<number>,
): Promise<number> {
  await using cluster = await HistoryCluster.start(kind)
  await prepare(cluster)
  const random = seeded(seed)
  const clients = new HistoryClients({
    places: cluster.servers,
    token: () => cluster.token,
    random: random.named('clients'),
    isShared: kind === 'etcd',
    record: (each) => records.push(each),
  })
  clients.start()
  const note = (text: string): void => void records.push({ type: 'note', atMs: performance.now(), text })
  const faults = await disturb({ cluster, clients, random, note })
  await cluster.ready()
  await clients.finish()
  return faults
}

/** Records that those of a history refer to. */
async function prepare({ servers }: HistoryCluster): Promise<void> {
  const server = servers[0]?.process ?? assert.fail('no server')
  const made = await server.call('POST', '/namespaces/svc-default/images', { name: historyImage, size: '1G' })
  assert.equal(made.status, 202, JSON.stringify(made.body))
  const publicKey = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
  const joined = await server.call('POST', '/agent/join', { token: server.joinToken, name: historyNode, publicKey })
  assert.equal(joined.status, 201, JSON.stringify(joined.body))
}
