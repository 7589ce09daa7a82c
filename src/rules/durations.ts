// Durations as Go writes them (`8760h0m0s`, `1.5h`), and days.

const unitSeconds: Readonly<Record<string, number>> = { d: 86_400, h: 3_600, m: 60, s: 1 }

/** Returns whole seconds, or undefined for an invalid duration. */
export function parseDuration(text: string): number | undefined {
  if (!/^(\d+(\.\d+)?[dhms])+$/.test(text)) return undefined
  let seconds = 0
  for (const part of text.split(/(?<=[dhms])/))
    seconds += Number(part.slice(0, -1)) * (unitSeconds[part.slice(-1)] ?? 0)
  return Math.round(seconds)
}

/** Formats whole seconds in the largest unit that is exact: `90m`, `2h`, `7d`. */
export function formatDuration(seconds: number): string {
  const [unit, size] = Object.entries(unitSeconds).find(([, each]) => seconds % each === 0) ?? ['s', 1]
  return `${seconds / size}${unit}`
}

const longestTtlSeconds = 10 * 365 * 86_400

/** For error messages. */
export const ttlRule = `a duration from 1s to ${formatDuration(longestTtlSeconds)}`

/** Accepts one second to ten years. */
export function parseTtl(text: string): number | undefined {
  const seconds = parseDuration(text)
  return seconds !== undefined && seconds >= 1 && seconds <= longestTtlSeconds ? seconds : undefined
}

/** Rounded for people: `40 s`, `3 min`, `1.5 h`, `30 days`. */
export const timeLeft = (seconds: number): string =>
  seconds < 90
    ? `${Math.ceil(seconds)} s`
    : seconds < 5_400
      ? `${Math.round(seconds / 60)} min`
      : seconds < 2 * 86_400
        ? `${(seconds / 3_600).toFixed(1)} h`
        : `${Math.floor(seconds / 86_400)} days`
