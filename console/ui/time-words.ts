// Durations and relative times as text.

export function span(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`
  if (seconds < 5_400) return `${Math.round(seconds / 60)} min`
  if (seconds < 48 * 3_600) return `${Math.round(seconds / 3_600)} h`
  return `${Math.round(seconds / 86_400)} d`
}

export function ago(at: string, nowMs: number): string {
  const seconds = (nowMs - Date.parse(at)) / 1_000
  if (Math.abs(seconds) < 5) return 'just now'
  return seconds < 0 ? `in ${span(-seconds)}` : `${span(seconds)} ago`
}

/** `< 1 ms`, `340 ms`, `2.4 s`, `1 min 12 s`, `3 h 5 min`. */
export function took(seconds: number): string {
  if (seconds === 0) return '0 s'
  if (seconds < 0.001) return '< 1 ms'
  const ms = Math.round(seconds * 1_000)
  if (ms < 1_000) return `${ms} ms`
  const tenths = Math.round(seconds * 10) / 10
  if (tenths < 10) return `${tenths} s`
  const whole = Math.round(seconds)
  if (whole < 60) return `${whole} s`
  const [minutes, hours] = [Math.floor(whole / 60), Math.floor(whole / 3_600)]
  return hours === 0 ? both(`${minutes} min`, whole % 60, 's') : both(`${hours} h`, minutes % 60, 'min')
}

const both = (first: string, rest: number, unit: string): string => (rest === 0 ? first : `${first} ${rest} ${unit}`)
