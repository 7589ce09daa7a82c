// Texts that have names: what a name stands for, in its file, in its folder, or in all that is scanned.
import { isName, isTooLong, joined, lastOf, type Part, type Template } from './template.ts'

export interface Definition {
  readonly name: string
  readonly value: Template
  readonly file: string
  readonly line: number
  /** Where in the file, by its token or character: one that is assigned again is what it was last. */
  readonly at: number
  /** Up to where it is known in its file. */
  readonly until: number
  /** Not changed later: other files may use it. */
  readonly isConstant: boolean
}

const isShouted = (name: string): boolean => /^[A-Z][A-Z0-9_]*$/.test(name)
const folderOf = (file: string): string => file.slice(0, Math.max(0, file.lastIndexOf('/')))
/** A name that is given this often is none to rely on. */
const maxAlike = 20
/** More than a program has; what comes after is not kept. */
const maxDefinitions = 200_000

export class Constants {
  readonly #inFile = new Map<string, Definition[]>()
  readonly #inFolder = new Map<string, Definition[]>()
  readonly #anywhere = new Map<string, Definition[]>()
  #size = 0

  add(definition: Definition): void {
    if (this.#size >= maxDefinitions || isTooLong(definition.value)) return
    this.#size += 1
    const { name, file, isConstant } = definition
    for (const key of isShouted(lastOf(name)) ? new Set([name, lastOf(name)]) : [name]) {
      put(this.#inFile, `${file}\0${key}`, definition)
      if (!isConstant) continue
      put(this.#inFolder, `${folderOf(file)}\0${key}`, definition)
      put(this.#anywhere, key, definition)
    }
  }

  /** What a name stands for at a place. */
  find(name: string, file: string, at: number): Definition | undefined {
    if (name === '') return undefined
    // `response.token` is no constant of that name; `Paths.TOKEN` is.
    const [owner = ''] = name.split('.').slice(-2)
    const isOwned = name.includes('.') && (/^[A-Z]/.test(owner) || isShouted(lastOf(name)))
    for (const key of isOwned ? [name, lastOf(name)] : [name]) {
      const own = this.#inFile.get(`${file}\0${key}`)
      const found =
        own &&
        (lastBefore(own, at) ?? only(own.length > maxAlike ? undefined : own.filter(({ isConstant }) => isConstant)))
      if (found) return found
      const other = only(this.#inFolder.get(`${folderOf(file)}\0${key}`)) ?? only(this.#anywhere.get(key))
      if (other) return other
    }
    return undefined
  }

  /**
   * A text with what is known put in, and which definitions that took. A name that stands for an address stays a name:
   * it is how the service is known.
   */
  resolve(template: Template, file: string, at: number): { parts: Template; used: readonly Definition[] } {
    const used: Definition[] = []
    const expand = (parts: Template, place: { file: string; at: number }, depth: number): Part[] =>
      parts.flatMap((part): Part[] => {
        if (!isName(part) || depth > 6 || used.length > 30) return [part]
        const found = this.find(part.name, place.file, place.at)
        if (!found || used.includes(found)) return [part]
        const first = found.value[0]
        if (typeof first === 'string' && /^[a-z+]+:\/\//i.test(first) && !/resources/.test(first)) return [part]
        used.push(found)
        return expand(found.value, { file: found.file, at: found.at }, depth + 1)
      })
    const parts = joined(expand(template, { file, at }, 0))
    return isTooLong(parts) ? { parts: template, used: [] } : { parts, used }
  }

  /** Where a name of a service leads, as far as it is written down. */
  addressOf(name: string, file: string): string | undefined {
    const value = this.find(name, file, Number.POSITIVE_INFINITY)?.value
    return typeof value?.[0] === 'string' ? value.map((part) => (isName(part) ? '\0' : part)).join('') : undefined
  }
}

function put(map: Map<string, Definition[]>, key: string, definition: Definition): void {
  const list = map.get(key)
  if (!list) map.set(key, [definition])
  else list.push(definition)
}

function lastBefore(list: readonly Definition[], at: number): Definition | undefined {
  let [low, high] = [0, list.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((list[middle] as Definition).at < at) low = middle + 1
    else high = middle
  }
  for (let index = low - 1; index >= Math.max(0, low - 8); index--)
    if (at < (list[index] as Definition).until) return list[index]
  return undefined
}

/** All say the same. */
function only(list: readonly Definition[] | undefined): Definition | undefined {
  const first = list?.[0]
  if (!list || list.length === 0 || list.length > maxAlike) return undefined
  return list.every(({ value }) => sameText(value, first?.value ?? [])) ? first : undefined
}

const sameText = (a: Template, b: Template): boolean =>
  a.length === b.length && a.every((part, index) => (isName(part) ? part.name : part) === textAt(b, index))
const textAt = (parts: Template, index: number): string | undefined => {
  const part = parts[index]
  return isName(part) ? part.name : part
}
