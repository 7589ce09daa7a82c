// Numbers of charts as people read them. Pure.
import { roughSize } from '../../../src/rules/sizes.ts'

type Unit = '1' | 's' | 'B/s'

const formats: Readonly<Record<Unit, (value: number) => string>> = {
  '1': (value) => (Number.isInteger(value) ? String(value) : value.toFixed(1)),
  s: (value) => {
    if (value === 0) return '0'
    return value < 0.9995 ? `${Number((value * 1_000).toPrecision(3))} ms` : `${Number(value.toPrecision(3))} s`
  },
  'B/s': (value) => `${roughSize(value)}/s`,
}

export const formatFor = (unit: Unit): ((value: number) => string) => formats[unit]

/** The newest value that was measured. */
export const latestOf = (values: readonly (number | null)[]): number | undefined =>
  values.findLast((value) => value !== null) ?? undefined

export const timesOf = (series: { readonly start: number; readonly values: readonly unknown[] }, stepSeconds: number) =>
  series.values.map((_, index) => series.start + index * stepSeconds)
