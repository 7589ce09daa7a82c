// Parses `WWW-Authenticate`.

export type Challenge =
  | { readonly scheme: 'basic' }
  | { readonly scheme: 'bearer'; readonly realm: string; readonly service: string | undefined }

const maxHeaderLength = 8_192
const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
const quoted = '"(?:[^"\\\\]|\\\\.)*"'
const parameter = new RegExp(`\\s*(${token})\\s*=\\s*(${quoted}|${token})\\s*`, 'y')
const schemeName = new RegExp(`\\s*(${token})(?=\\s|,|$)`, 'y')

/** The supported challenges, in their order. One header may have several. */
export function parseChallenges(header: string): Challenge[] {
  if (header.length > maxHeaderLength) return []
  const found: Challenge[] = []
  let at = 0
  while (at < header.length) {
    schemeName.lastIndex = at
    const [whole = '', scheme] = schemeName.exec(header) ?? []
    if (scheme === undefined) break
    at += whole.length
    const parameters = new Map<string, string>()
    for (;;) {
      parameter.lastIndex = at
      const [pair = '', name = '', value = ''] = parameter.exec(header) ?? []
      if (pair === '') break
      parameters.set(name.toLowerCase(), value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, '$1') : value)
      at += pair.length
      if (header[at] !== ',') break
      at += 1
    }
    const challenge = challengeOf(scheme.toLowerCase(), parameters)
    if (challenge) found.push(challenge)
    while (header[at] === ',' || header[at] === ' ') at += 1
  }
  return found
}

function challengeOf(scheme: string, parameters: ReadonlyMap<string, string>): Challenge | undefined {
  if (scheme === 'basic') return { scheme }
  const realm = parameters.get('realm')
  return scheme === 'bearer' && realm !== undefined ? { scheme, realm, service: parameters.get('service') } : undefined
}
