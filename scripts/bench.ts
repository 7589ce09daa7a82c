// `npm run bench [-- NAME…] [--smoke]`: ours beside a reference, from one run on one machine; `scale` only by its name.
// Ends with 1 when a target is missed, and says what became worse by more than a fifth since the last landing. --save: keeps the
// ratios of this version in docs/benchmarks.json. --smoke: a run of seconds that judges nothing, so that a test can see that all
// of them still work.

import { addToHistory, readHistory, regression } from '../bench/history.ts'
import { isSmoke } from '../bench/measure.ts'
import { type BenchRow, meetsTarget, tableHead, tableLine } from '../bench/row.ts'
import about from '../package.json' with { type: 'json' }
import { isBuilt } from './sources.ts'

interface Bench {
  bench(): Promise<readonly BenchRow[]>
}

export const benches: Readonly<Record<string, () => Promise<Bench>>> = {
  http: () => import('../bench/http.ts'),
  store: () => import('../bench/store.ts'),
  etcd: () => import('../bench/etcd.ts'),
  servers: () => import('../bench/servers.ts'),
  cli: () => import('../bench/cli.ts'),
  fleet: () => import('../bench/fleet.ts'),
  burst: () => import('../bench/burst.ts'),
  queue: () => import('../bench/queue.ts'),
  placement: () => import('../bench/placement.ts'),
  pools: () => import('../bench/pools.ts'),
  runners: () => import('../bench/runners.ts'),
  scale: () => import('../bench/scale.ts'),
  guest: () => import('../bench/guest.ts'),
  images: () => import('../bench/images.ts'),
  lazy: () => import('../bench/lazy.ts'),
  resume: () => import('../bench/resume.ts'),
  registry: () => import('../bench/registry.ts'),
  'image-places': () => import('../bench/image-places.ts'),
  console: () => import('../bench/console.ts'),
  kubernetes: () => import('../bench/kubernetes.ts'),
}

/** They take a machine of their own for minutes. */
const onlyByName: ReadonlySet<string> = new Set(['scale'])

/** A failing benchmark does not stop the others. */
async function runBenches(names: readonly string[]): Promise<boolean> {
  let isWell = true
  const all: [bench: string, row: BenchRow][] = []
  if (isSmoke) console.error('A smoke run: its figures mean nothing.')
  console.log(tableHead)
  for (const name of names) {
    try {
      const { bench } = (await benches[name]?.()) ?? {}
      if (!bench) throw new Error('there is no such benchmark')
      const rows = await bench()
      for (const row of rows) console.log(tableLine(name, row, !isSmoke))
      all.push(...rows.map((row): [string, BenchRow] => [name, row]))
      isWell &&= isSmoke || rows.every(meetsTarget)
    } catch (error) {
      console.error(`${name} failed:`, error)
      isWell = false
    }
  }
  if (isSmoke) return isWell
  const history = await readHistory()
  const worse = all.flatMap(([name, row]) => regression(history, name, row) ?? [])
  if (worse.length > 0) console.error(`Worse by more than a fifth:\n${worse.join('\n')}`)
  const isSaved = process.argv.includes('--save')
  if (isSaved) await addToHistory(about.version, new Date().toISOString().slice(0, 10), all)
  return isWell
}

if (import.meta.main) {
  if (!isBuilt()) await (await import('./build.ts')).buildProgram()
  const asked = process.argv.slice(2).filter((word) => !word.startsWith('-'))
  const usual = Object.keys(benches).filter((name) => !onlyByName.has(name))
  const isWell = await runBenches(asked.length > 0 ? asked : usual)
  // Helpers of Chromium and connections that are kept open may outlive their work for a moment.
  process.exit(isWell ? 0 : 1)
}
