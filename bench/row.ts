// A row of the benchmark: our figure, the reference of the same run, and what their ratio has to be.

export interface BenchRow {
  readonly what: string
  readonly reference: string
  readonly unit: string
  readonly ours: number
  readonly theirs: number
  readonly ratio: number
  /** Neither: it is measured, and nothing is promised. */
  readonly atLeast?: number
  readonly atMost?: number
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

/** The ratio is the median over neighbouring rounds: the pace of a shared machine changes from one to the next. */
export function compared(
  about: Omit<BenchRow, 'ours' | 'theirs' | 'ratio'>,
  ours: readonly number[],
  theirs: readonly number[],
): BenchRow {
  const ratio = median(ours.map((value, round) => value / (theirs[round] ?? Number.NaN)))
  return { ...about, ours: median(ours), theirs: median(theirs), ratio }
}

/** A figure that stays below a limit, whatever the machine. */
export const limited = (what: string, unit: string, ours: number, limit: number): BenchRow =>
  compared({ what, reference: 'the limit', unit, atMost: 1 }, [ours], [limit])

export const meetsTarget = ({ ratio, atLeast = 0, atMost = Infinity }: BenchRow): boolean =>
  ratio >= atLeast && ratio <= atMost

const figure = (value: number): string =>
  value >= 100 ? Math.round(value).toLocaleString('en') : String(Number(value.toPrecision(3)))

export const tableHead = '| Bench | What | Reference | Ours | Theirs | Ratio | Target |\n|---|---|---|---|---|---|---|'

/** As a line of the table in docs/benchmarks.md. */
export function tableLine(bench: string, row: BenchRow, isJudged: boolean): string {
  const { what, reference, unit, ours, theirs, ratio, atLeast, atMost } = row
  if (![ours, theirs, ratio].every(Number.isFinite)) throw new Error(`${bench}: "${what}" has no figure`)
  const target = atLeast !== undefined ? `≥ ${atLeast}` : atMost !== undefined ? `≤ ${atMost}` : '–'
  const verdict = isJudged && !meetsTarget(row) ? ' MISSED' : ''
  const cells = [bench, what, reference, `${figure(ours)} ${unit}`, `${figure(theirs)} ${unit}`, figure(ratio)]
  return `| ${cells.join(' | ')} | ${target}${verdict} |`
}
