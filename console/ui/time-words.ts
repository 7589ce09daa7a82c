// How long ago, in how long, or how long something took, in a few words.
import { texts } from '../texts.ts'

const { time } = texts

export function span(seconds: number): string {
  if (seconds < 90) return time.seconds(Math.round(seconds))
  if (seconds < 5_400) return time.minutes(Math.round(seconds / 60))
  if (seconds < 48 * 3_600) return time.hours(Math.round(seconds / 3_600))
  return time.days(Math.round(seconds / 86_400))
}

export function ago(at: string, nowMs: number): string {
  const seconds = (nowMs - Date.parse(at)) / 1_000
  if (Math.abs(seconds) < 5) return time.now
  return seconds < 0 ? time.in(span(-seconds)) : time.ago(span(seconds))
}

/** How long something took: `< 1 ms`, `340 ms`, `2.4 s`, `1 min 12 s`, `3 h 5 min`. */
export function took(seconds: number): string {
  if (seconds === 0) return time.seconds(0)
  if (seconds < 0.001) return time.underMillisecond
  const ms = Math.round(seconds * 1_000)
  if (ms < 1_000) return time.milliseconds(ms)
  const tenths = Math.round(seconds * 10) / 10
  if (tenths < 10) return time.seconds(tenths)
  const whole = Math.round(seconds)
  if (whole < 60) return time.seconds(whole)
  const [minutes, hours] = [Math.floor(whole / 60), Math.floor(whole / 3_600)]
  return hours === 0
    ? both(time.minutes(minutes), whole % 60, time.seconds)
    : both(time.hours(hours), minutes % 60, time.minutes)
}

const both = (first: string, rest: number, text: (value: number) => string): string =>
  rest === 0 ? first : `${first} ${text(rest)}`
