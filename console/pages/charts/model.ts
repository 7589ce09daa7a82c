// Formats, time ranges and scales of charts.
import { sizeText } from '../../../src/rules/sizes.ts'
import { rateText } from '../../ui/sizes.ts'
import { took } from '../../ui/time-words.ts'

export type Unit = '1' | 's' | 'B/s' | 'B' | '%'

export const formats: Readonly<Record<Unit, (value: number) => string>> = {
  '1': (value) => (Number.isInteger(value) ? String(value) : value.toFixed(1)),
  s: took,
  'B/s': rateText,
  B: sizeText,
  '%': (value) => `${Number(value.toPrecision(value < 10 ? 2 : 3))} %`,
}

export const latestOf = (values: readonly (number | null)[]): number | undefined =>
  values.findLast((value) => value !== null) ?? undefined

export const timesOf = (series: { readonly start: number; readonly values: readonly unknown[] }, stepSeconds: number) =>
  series.values.map((_, index) => series.start + index * stepSeconds)

/** Returns the lowest and the highest value; undefined without values. */
export function rangeOf(
  values: readonly (number | null)[],
): { readonly low: number; readonly high: number } | undefined {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]
  for (const value of values) {
    if (value === null) continue
    low = Math.min(low, value)
    high = Math.max(high, value)
  }
  return low > high ? undefined : { low, high }
}

const minutesOf = { '1h': 60, '6h': 360, '24h': 1_440, '7d': 10_080 } as const
export type Range = keyof typeof minutesOf
export const allRanges = Object.keys(minutesOf) as readonly Range[]
export const dayRanges = allRanges.filter((range) => minutesOf[range] <= 1_440)

/** Returns minutes; a day if the text is not one of the ranges. */
export const rangeFrom = (text: string | null, ranges: readonly Range[]): number =>
  minutesOf[ranges.find((range) => range === text) ?? '24h']

/** `Europe/Berlin (UTC+1)`, since charts show local time. */
export function zoneText(now: Date, zone = new Intl.DateTimeFormat().resolvedOptions().timeZone): string {
  const parts = new Intl.DateTimeFormat('en', { timeZone: zone, timeZoneName: 'shortOffset' }).formatToParts(now)
  const offset = (parts.find(({ type }) => type === 'timeZoneName')?.value ?? '').replace('GMT', 'UTC')
  return zone === 'UTC' ? zone : `${zone} (${offset})`
}

/** The upper end of the scale: 100 for percentages, otherwise a little above the highest value, and at least 1 ms. */
export function topOf(unit: Unit, high: number): number {
  if (unit === '%') return 100
  if (high <= 0) return 1
  return unit === 's' ? Math.max(0.001, high * 1.1) : high * 1.1
}

/** Tick distances that give round numbers of bytes and seconds. */
export const stepsOf: Readonly<Partial<Record<Unit, number[]>>> = {
  ...Object.fromEntries(['B', 'B/s'].map((unit) => [unit, Array.from({ length: 50 }, (_, power) => 2 ** power)])),
  s: [
    ...[0.001, 0.01, 0.1].flatMap((power) => [1, 2, 5].map((step) => step * power)),
    ...[1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 21_600, 86_400],
  ],
}

/** Tick labels in 24-hour time; the date at midnight, or everywhere if ticks are days apart. */
export function timeTicks(times: readonly number[], stepSeconds: number, timeZone?: string): string[] {
  const zone = timeZone === undefined ? {} : { timeZone }
  const clock = new Intl.DateTimeFormat('en-GB', {
    hour: '2-digit',
    minute: '2-digit',
    ...(stepSeconds < 60 && { second: '2-digit' }),
    ...zone,
  })
  const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', ...zone })
  return times.map((time) => {
    const at = new Date(time * 1_000)
    return stepSeconds >= 86_400 || /^00:00(:00)?$/.test(clock.format(at)) ? day.format(at) : clock.format(at)
  })
}
