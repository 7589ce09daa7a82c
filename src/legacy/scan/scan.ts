// Finds legacy calls in what people have. Files are read twice: first for the constants that they define, then for the
// calls that they make; what is found is judged together. Pure: whoever calls brings the texts.
import { Constants, type Definition } from './constants.ts'
import type { Finding, Hit, ScanOptions } from './finding.ts'
import { readJson } from './json.ts'
import { judged } from './judge.ts'
import { type Kind, kindOf, kindOfFence } from './kinds.ts'
import { isOpenApiJson, isOpenApiYaml, openApiJsonHits, openApiYamlHits } from './openapi.ts'
import { Program } from './program.ts'
import { proseOf, writtenIn } from './prose.ts'
import { defineVariables, requestHits } from './requests.ts'
import { shellDefine, shellHits } from './shell.ts'
import { Source } from './source.ts'
import { entriesOf } from './yaml.ts'
import { yamlDefine, yamlHits } from './yaml-calls.ts'

type TextKind = Exclude<Kind, 'binary' | 'log'>

const startLength = 65_536
const kindOfText = (file: string, text: string): TextKind | undefined => {
  const kind = kindOf(file, text.slice(0, startLength))
  return kind === 'binary' || kind === 'log' ? undefined : kind
}

export class Scan {
  readonly #options: ScanOptions
  readonly #constants = new Constants()
  readonly #hits: Hit[] = []
  /** Places of definitions whose path is used elsewhere: the call is there. */
  readonly #used = new Set<string>()
  readonly #about = new Set<string>()

  constructor(options: ScanOptions = {}) {
    this.#options = options
  }

  /** First all files: what they give names to. */
  survey(file: string, text: string): void {
    const kind = kindOfText(file, text)
    if (kind === undefined) return
    if (/orka|macstadium/i.test(file) || /orka|macstadium/i.test(text)) this.#about.add(file)
    this.#define(kind, new Source(file, text))
  }

  #define(kind: TextKind, source: Source): void {
    if (kind === 'json') {
      const root = readJson(source.text)
      if (root) defineVariables(root, source, this.#constants)
    } else if (kind === 'yaml') yamlDefine(entriesOf(source.text), source, this.#constants)
    else if (kind === 'shell' || kind === 'requests') shellDefine(source, this.#constants)
    else if (kind !== 'prose') new Program(source, kind).define(this.#constants)
  }

  /** Then all of them again: what they call. */
  read(file: string, text: string): void {
    const kind = kindOfText(file, text)
    if (kind !== undefined) for (const hit of this.#hitsIn(kind, new Source(file, text))) this.#hits.push(hit)
  }

  #hitsIn(kind: TextKind, source: Source): readonly Hit[] {
    const isUsed = (definition: Definition, path: string): void => {
      this.#used.add(`${definition.file}\0${definition.line}\0${path}`)
    }
    if (kind === 'shell') return shellHits(source, this.#constants, isUsed)
    if (kind === 'json') return this.#jsonHits(source)
    if (kind === 'yaml') {
      const entries = entriesOf(source.text)
      return isOpenApiYaml(entries)
        ? openApiYamlHits(entries, source)
        : yamlHits(entries, source, this.#constants, isUsed)
    }
    if (kind === 'prose' || kind === 'requests') return this.#proseHits(source, kind === 'requests')
    return new Program(source, kind).hits(this.#constants, isUsed)
  }

  #jsonHits(source: Source): readonly Hit[] {
    const root = readJson(source.text)
    if (!root) return this.#hitsIn('settings', source)
    return isOpenApiJson(root) ? openApiJsonHits(root, source) : requestHits(root, source, this.#constants)
  }

  #proseHits(source: Source, isRequests: boolean): Hit[] {
    const { hits, blocks } = proseOf(source, isRequests)
    const inBlocks = blocks.flatMap(({ language, text, line }): readonly Hit[] => {
      const kind = kindOfFence(language)
      if (kind === undefined || kind === 'binary' || kind === 'log') return []
      const part = source.part(text, line)
      const own = kind === 'prose' || kind === 'requests' ? [] : this.#hitsIn(kind, part)
      return own.length > 0 || language === '' || kind !== 'requests'
        ? [
            ...own,
            ...(language === '' && own.length === 0
              ? text.split('\n').flatMap((each, at) => writtenIn(each, at + 1, part, false))
              : []),
          ]
        : proseOf(part, true).hits
    })
    return [...hits, ...inBlocks]
  }

  findings(): Finding[] {
    const hits = this.#hits.filter(({ file, line, match, isRequest }) =>
      isRequest && match.baseKind !== 'none' ? true : !this.#used.has(`${file}\0${line}\0${match.path}`),
    )
    const order = new Map([...new Set(hits.map(({ file }) => file))].map((file, index) => [file, index]))
    return judged(hits, {
      constants: this.#constants,
      isAbout: (file) => this.#about.has(file),
      options: this.#options,
    }).toSorted((a, b) => (order.get(a.file) ?? 0) - (order.get(b.file) ?? 0) || a.line - b.line || a.column - b.column)
  }
}
