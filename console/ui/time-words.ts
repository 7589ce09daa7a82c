// How long ago, or in how long, in two words.
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
