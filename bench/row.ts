// One line of the benchmark: our figure, what it is measured against in the same run, and the ratio that must hold.

export interface BenchRow {
  readonly name: string
  readonly ours: number
  readonly reference: number
  readonly unit: string
  readonly ratio: number
  readonly target: number
  /** higher: the ratio must be at least the target. lower: at most. */
  readonly better: 'higher' | 'lower'
}

export const meetsTarget = (row: BenchRow): boolean =>
  row.better === 'higher' ? row.ratio >= row.target : row.ratio <= row.target

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2
}

const figure = (value: number): string => (value >= 100 ? value.toFixed(0) : value.toPrecision(3))

export function printRows(rows: readonly BenchRow[]): void {
  for (const row of rows) {
    const sign = row.better === 'higher' ? '≥' : '≤'
    const verdict = meetsTarget(row) ? 'ok' : 'MISSED'
    console.log(row.name)
    console.log(`  ours ${figure(row.ours)} ${row.unit}, reference ${figure(row.reference)} ${row.unit}`)
    console.log(`  ratio ${figure(row.ratio)} (target ${sign} ${row.target}): ${verdict}`)
  }
}
