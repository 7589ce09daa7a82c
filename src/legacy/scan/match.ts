// Whether a text is the address of a legacy call: what stands before the path, and which calls the path can be.
import { callsAt, type Found, unknownPart } from '../find.ts'
import { isName, lastOf, type Template } from './template.ts'

export interface Match {
  /** What the path follows: a name, an address, or nothing. The same base is the same service. */
  readonly base: string
  readonly baseKind: 'name' | 'address' | 'none'
  readonly path: string
  /** Those that fit best come first. */
  readonly calls: readonly Found[]
  /** Other services have such paths, too. */
  readonly isGeneric: boolean
  /** It begins with a slash, or with an address: a word alone may be anything. */
  readonly isRooted: boolean
  /** A method that the text itself says: `GET /path`. */
  readonly method: string | undefined
}

/** First parts of paths that no other service has; the others need evidence that it is this one. */
const own = new Set(['resources', 'default-base-image', 'validation-requirements', 'validate-license-key'])
const shared = new Set(['token', 'users', 'logs', 'health-check', 'version'])

const request = /^(GET|POST|PUT|DELETE|PATCH|HEAD) +(?=[^ ]+$)/
const noAddress = /[\s"'`<>|;,(){}\\^]/
const longest = 600

export function matchOf(template: Template): Match | undefined {
  const names: string[] = []
  let text = ''
  for (const part of template) {
    if (isName(part)) names.push(part.name)
    text += isName(part) ? unknownPart : part
    if (text.length > longest) return undefined
  }
  const method = request.exec(text)?.[1]
  const [place = ''] = text.replace(request, '').split('#', 1)
  if (noAddress.test(place)) return undefined
  const split = splitOf(place, names)
  if (!split) return undefined
  const path = `/${split.path.replace(/^\/+/, '')}`
  const calls = callsOf(path)
  if (calls.length === 0 || !isSaid(path)) return undefined
  const [first = ''] = path.slice(1).split(/[/?]/, 1)
  return {
    base: split.base,
    baseKind: split.kind,
    path,
    calls,
    isGeneric: !own.has(first),
    isRooted: split.kind !== 'none' || place.startsWith('/'),
    method,
  }
}

const partsOf = (path: string): string[] => (path.split('?')[0] ?? '').split('/').filter((part) => part !== '')

/** Calls whose parameters stand where the unknown parts are come before those that have a word there. */
function callsOf(path: string): Found[] {
  const parts = partsOf(path)
  const isAligned = ({ call }: Found): boolean => {
    const theirs = partsOf(call.path)
    return parts.every((part, index) => !part.includes(unknownPart) || theirs[index]?.startsWith('{'))
  }
  return callsAt(path).toSorted((a, b) => Number(isAligned(b)) - Number(isAligned(a)))
}

/** Enough of it is there to know it: `/resources/${x}/${y}` may be anything. */
function isSaid(path: string): boolean {
  const known = partsOf(path).filter((part) => !part.includes(unknownPart))
  return known[0] === 'resources' ? known.length >= 2 : known.length >= 1
}

interface Split {
  readonly base: string
  readonly kind: Match['baseKind']
  readonly path: string
}

const address = /^(?:https?:\/\/)?(?:[^@/]*@)?([\w.-]*)((?::\d+)?)(?=\/|$)/i
const bareHost = /^(?:\d{1,3}(?:\.\d{1,3}){3}|localhost|[\w-]+(?:\.[\w-]+)+|[\w.-]+:\d+)(?::\d+)?$/i
/** Pages about the API, not the API. */
const documentation =
  /^(?:[\w-]*docs?|documenter|documentation|help|support|wiki|learn|developers?|www|github|gitlab|bitbucket|stackoverflow|medium|npmjs|pypi)\.|\.(?:github\.io|readthedocs\.io|readme\.io|github\.com|atlassian\.net)$/i

function splitOf(text: string, names: readonly string[]): Split | undefined {
  const start = beginning(text.split('?', 1)[0] ?? '')
  if (start === undefined) return undefined
  const before = text.slice(0, start).replace(/(?<!\/)\/+$/, '')
  const path = text.slice(start)
  if (before === '' || before === '.') return before === '' ? { base: '', kind: 'none', path } : undefined
  const lastUnknown = before.lastIndexOf(unknownPart)
  if (lastUnknown !== -1) {
    const prefix = before.slice(lastUnknown + 1)
    const head = before.slice(0, lastUnknown).replace(/^https?:\/\//i, '')
    // The address may be put together of several; a path before them is another path.
    if (head.includes('/') || /^[\w.-]*[^/:\w.-]/.test(prefix)) return undefined
    const name = names.find((each) => each !== '') ?? ''
    const folder = prefix.includes('/') ? prefix.slice(prefix.indexOf('/')) : ''
    return { base: `${lastOf(name) || 'expression'}${folder}`, kind: 'name', path }
  }
  const isAddress = /^https?:\/\/[\w[]/i.test(before) || bareHost.test(before)
  const [whole = '', host = '', port = ''] = address.exec(before) ?? []
  if (!isAddress || documentation.test(host)) return undefined
  return { base: `//${host}${port}${before.slice(whole.length)}`, kind: 'address', path }
}

/** Where the path begins: at `resources/` wherever it is, at a shared word only behind the address. */
function beginning(text: string): number | undefined {
  const at = text.indexOf('resources/')
  if (at !== -1 && (at === 0 || text[at - 1] === '/' || text[at - 1] === unknownPart)) return at
  const scheme = /^(?:https?):\/\//i.exec(text)?.[0].length ?? 0
  if (scheme === 0 && isWord(text)) return 0
  for (let slash = text.indexOf('/', scheme); slash !== -1; slash = text.indexOf('/', slash + 1))
    if (isWord(text.slice(slash + 1))) return slash + 1
  const after = text.lastIndexOf(unknownPart) + 1
  return after > 0 && isWord(text.slice(after)) ? after : undefined
}

function isWord(text: string): boolean {
  const [word = ''] = text.slice(0, 40).split('/', 1)
  return shared.has(word) || own.has(word)
}

/** The call that it is by this method; `isGuess`: the method is not one that the path has, or none is known. */
export function callBy(match: Match, method: string | undefined): { found: Found; isGuess: boolean } | undefined {
  const { calls, isGeneric } = match
  const asked = calls.find(({ call }) => call.method === method)
  if (asked) return { found: asked, isGuess: false }
  const [first, ...others] = calls
  if (!first) return undefined
  // Another method than a shared path has is a call of another service.
  if (method !== undefined && isGeneric) return undefined
  const isOnly = others.every(({ row }) => row === first.row)
  if (method !== undefined) return isOnly ? { found: first, isGuess: true } : undefined
  const read = calls.find(({ call }) => call.method === 'GET')
  return { found: read ?? first, isGuess: others.some(({ call }) => call.method !== first.call.method) }
}
