// The ratios of each landing, in docs/benchmarks.json. A run of `npm run bench` says what became worse since the last one.
import fs from 'node:fs/promises'
import path from 'node:path'
import type { BenchRow } from './row.ts'

const file = path.join(import.meta.dirname, '../docs/benchmarks.json')
/** Runs of one version differ by this much on a quiet machine. */
const tolerance = 1.2

/** Oldest first. */
export type BenchHistory = readonly {
  readonly version: string
  readonly date: string
  readonly ratios: Readonly<Record<string, number>>
}[]

export const readHistory = async (): Promise<BenchHistory> => JSON.parse(await fs.readFile(file, 'utf8'))

const nameOf = (bench: string, { what, reference }: BenchRow): string => `${bench}: ${what} / ${reference}`

/** Whether more is better. */
const growsWell = ({ atLeast, atMost, unit }: BenchRow): boolean =>
  atLeast !== undefined || (atMost === undefined && unit.endsWith('/s'))

/** Compares with the last landing that has this row. Undefined if the row is new or not worse. */
export function regression(history: BenchHistory, bench: string, row: BenchRow): string | undefined {
  const name = nameOf(bench, row)
  const last = history.findLast(({ ratios }) => ratios[name] !== undefined)
  const before = last?.ratios[name]
  if (before === undefined) return undefined
  const isWorse = growsWell(row) ? row.ratio * tolerance < before : row.ratio > before * tolerance
  return isWorse ? `${name}: ${figure(before)} in ${last?.version}, ${figure(row.ratio)} now` : undefined
}

/** Replaces the figures of this version that were measured again. */
export async function addToHistory(
  version: string,
  date: string,
  rows: readonly (readonly [bench: string, row: BenchRow])[],
): Promise<void> {
  const history = await readHistory()
  const known = history.find((each) => each.version === version)
  const measured = Object.fromEntries(rows.map(([bench, row]) => [nameOf(bench, row), Number(figure(row.ratio))]))
  const entry = { version, date, ratios: { ...known?.ratios, ...measured } }
  const all = [...history.filter((each) => each !== known), entry]
  await fs.writeFile(file, `${JSON.stringify(all, undefined, 2)}\n`)
}

const figure = (ratio: number): string => String(Number(ratio.toPrecision(3)))
