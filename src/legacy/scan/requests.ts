// Legacy calls in JSON: requests of Postman collections, of recorded sessions and of whatever else writes method and
// address side by side. Answers that stand beside them are none.
import type { Constants } from './constants.ts'
import type { Candidate } from './finding.ts'
import type { JsonValue } from './json.ts'
import { matchOf } from './match.ts'
import { shellCandidates } from './shell.ts'
import type { Source } from './source.ts'
import type { Template } from './template.ts'
import { methodOfWord } from './verbs.ts'
import { templateOf } from './words.ts'

const answers = /^(?:responses?|originalRequest|help|examples?|errors|_links|links|docs|description|body|data|content)$/
const addresses = /^(?:url|uri|endpoint|href|address|\w*(?:Url|URL|_url|Uri|_uri))$/

/** Variables of a collection. */
export function defineVariables(root: JsonValue, source: Source, constants: Constants): void {
  for (const each of root.members?.get('variable')?.items ?? []) {
    const [name, value] = [each.members?.get('key')?.text, each.members?.get('value')?.text]
    if (name === undefined || value === undefined) continue
    constants.add({
      name,
      value: [value],
      file: source.file,
      line: source.lineOf(each.at),
      at: 0,
      until: Number.POSITIVE_INFINITY,
      isConstant: false,
    })
  }
}

export function requestCandidates(root: JsonValue, source: Source, constants: Constants): Candidate[] {
  const candidates: Candidate[] = []
  const add = (place: JsonValue, template: Template, method: string | undefined, isRequest: boolean): void => {
    const match = matchOf(constants.resolve(template, source.file, Number.POSITIVE_INFINITY).parts)
    if (!match || (match.baseKind === 'none' && !isRequest)) return
    const text = source.snippet(place.at, place.at + 160)
    candidates.push({
      ...source.place(place.at),
      text,
      match,
      method,
      isRequest,
      mentionsProduct: false,
      receiver: 'request',
    })
  }
  const waiting: { key: string; value: JsonValue }[] = [{ key: '', value: root }]
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { key, value } = next
    if (answers.test(key)) continue
    if (value.text !== undefined) {
      if (/\b(?:curl|wget)\s/.test(value.text))
        for (const candidate of shellCandidates(
          source.partAt(value.text, value.at),
          constants,
          () => undefined,
          Number.POSITIVE_INFINITY,
        ))
          candidates.push(candidate)
      else if (key === 'request') add(value, templateOf(value.text), 'GET', true)
      else if (addresses.test(key)) add(value, templateOf(value.text), undefined, false)
      continue
    }
    const method = methodOfWord(value.members?.get('method')?.text ?? '')
    const address = value.members?.get('url') ?? value.members?.get('uri') ?? value.members?.get('path')
    const isRequest = address !== undefined && (method !== undefined || key === 'request')
    if (isRequest) {
      const [place, template] = templateIn(address)
      add(place, template, method ?? 'GET', true)
    }
    for (const [name, member] of value.members ?? [])
      if (!isRequest || member !== address) waiting.push({ key: name, value: member })
    for (const item of value.items ?? []) waiting.push({ key: '', value: item })
  }
  return candidates.toSorted((a, b) => a.line - b.line)
}

/** A text, one that is there as it was typed, or its parts. */
function templateIn(address: JsonValue): [place: JsonValue, template: Template] {
  const raw = address.text === undefined ? address.members?.get('raw') : address
  if (raw?.text !== undefined) return [raw, templateOf(raw.text)]
  const parts = (name: string): string[] => (address.members?.get(name)?.items ?? []).map(({ text = '' }) => text)
  return [address.members?.get('path') ?? address, templateOf([...parts('host'), ...parts('path')].join('/'))]
}
