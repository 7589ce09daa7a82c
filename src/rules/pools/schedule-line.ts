// A schedule entry as users write it: `0 7 * * mon-fri Europe/Berlin=4`. The service validates expressions and time
// zones.

interface Line {
  readonly cron: string
  readonly timeZone?: string
  readonly minIdle: number
}

export const scheduleLine = ({ cron, timeZone, minIdle }: Line): string =>
  `${cron}${timeZone === undefined ? '' : ` ${timeZone}`}=${minIdle}`

/** Returns undefined for an invalid line. */
export function parseScheduleLine(text: string): Line | undefined {
  const at = text.lastIndexOf('=')
  const words = text.slice(0, Math.max(0, at)).trim().split(/\s+/)
  const count = text.slice(at + 1).trim()
  if (at < 0 || !/^\d{1,4}$/.test(count) || words.length < 5 || words.length > 6) return undefined
  const [timeZone] = words.slice(5)
  return { cron: words.slice(0, 5).join(' '), ...(timeZone !== undefined && { timeZone }), minIdle: Number(count) }
}
