// What charts work out without being drawn: numbers as people read them, how far back, and the time zone.
import { sizeText } from '../../../src/rules/sizes.ts'
import { rateText } from '../../ui/sizes.ts'

export type Unit = '1' | 's' | 'B/s' | 'B' | '%'

const formats: Readonly<Record<Unit, (value: number) => string>> = {
  '1': (value) => (Number.isInteger(value) ? String(value) : value.toFixed(1)),
  s: (value) => {
    if (value === 0) return '0'
    return value < 0.9995 ? `${Number((value * 1_000).toPrecision(3))} ms` : `${Number(value.toPrecision(3))} s`
  },
  'B/s': rateText,
  B: sizeText,
  '%': (value) => `${Number(value.toPrecision(value < 10 ? 2 : 3))} %`,
}

export const formatFor = (unit: Unit): ((value: number) => string) => formats[unit]

/** The newest value that was measured. */
export const latestOf = (values: readonly (number | null)[]): number | undefined =>
  values.findLast((value) => value !== null) ?? undefined

export const timesOf = (series: { readonly start: number; readonly values: readonly unknown[] }, stepSeconds: number) =>
  series.values.map((_, index) => series.start + index * stepSeconds)

/** The lowest and the highest value; undefined without any. */
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

/** In minutes; a day where nobody chose, or chose what is not offered. */
export const rangeFrom = (text: string | null, ranges: readonly Range[]): number =>
  minutesOf[ranges.find((range) => range === text) ?? '24h']

/** `Europe/Berlin (UTC+1)`: charts and times are in the reader's own. */
export function zoneText(now: Date, zone = new Intl.DateTimeFormat().resolvedOptions().timeZone): string {
  const parts = new Intl.DateTimeFormat('en', { timeZone: zone, timeZoneName: 'shortOffset' }).formatToParts(now)
  const offset = (parts.find(({ type }) => type === 'timeZoneName')?.value ?? '').replace('GMT', 'UTC')
  return zone === 'UTC' ? zone : `${zone} (${offset})`
}

/** Where the scale ends: percents at all of it, everything else a little above what was measured. */
export const topOf = (unit: Unit, high: number): number => (unit === '%' ? 100 : high > 0 ? high * 1.1 : 1)

/** Times under a chart, in 24 hours; with the day where it begins, or where steps are days. */
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
