// Network addresses as text: which budget they count for, and whether they are local.

/** Whether a host is this machine. Accepts what `URL.hostname` returns. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host)

/**
 * The network that rate limits count an address for: IPv4 unchanged, also in its IPv6 form; IPv6 by its /64, because one
 * customer usually has 2^64 addresses; any other text unchanged.
 */
export function networkOf(address: string): string {
  const text = (address.split('%')[0] ?? '').toLowerCase()
  const groups = addressGroups(text)
  if (!groups) return address
  const [high = 0, low = 0] = groups.slice(6)
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff)
    return [high >> 8, high & 255, low >> 8, low & 255].join('.')
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':')}::/64`
}

/** The eight groups of an IPv6 address; undefined for other text. */
export function addressGroups(text: string): number[] | undefined {
  if (!text.includes(':')) return undefined
  const halves = dotless(text).split('::')
  if (halves.length > 2) return undefined
  const [head = [], tail = []] = halves.map((half) => (half === '' ? [] : half.split(':')))
  const missing = 8 - head.length - tail.length
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined
  const groups = [...head, ...Array<string>(missing).fill('0'), ...tail]
  return groups.every((group) => /^[0-9a-f]{1,4}$/.test(group)) ? groups.map((group) => parseInt(group, 16)) : undefined
}

/** `::ffff:1.2.3.4` → `::ffff:102:304` */
const dotless = (text: string): string =>
  text.replace(/(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/, (_all, ...parts: string[]) => {
    const [a, b, c, d] = parts.slice(0, 4).map(Number) as [number, number, number, number]
    return `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
  })
