// Finds legacy calls in what people have. Files are read twice: first for the constants that they define, then for the
// calls that they make; what is found is classified together. Pure: whoever calls brings the texts.

import { classify } from './classify.ts'
import { Constants, type Definition } from './constants.ts'
import type { Candidate, Finding, ScanOptions } from './finding.ts'
import { readJson } from './json.ts'
import { type Kind, kindOf, kindOfFence } from './kinds.ts'
import { isOpenApiJson, isOpenApiYaml, openApiJsonCandidates, openApiYamlCandidates } from './openapi.ts'
import { Program } from './program.ts'
import { proseOf, writtenIn } from './prose.ts'
import { defineVariables, requestCandidates } from './requests.ts'
import { shellCandidates, shellDefine } from './shell.ts'
import { Source } from './source.ts'
import { entriesOf } from './yaml.ts'
import { yamlCandidates, yamlDefine } from './yaml-calls.ts'

type TextKind = Exclude<Kind, 'binary' | 'log'>

const startLength = 65_536
const kindOfText = (file: string, text: string): TextKind | undefined => {
  const kind = kindOf(file, text.slice(0, startLength))
  return kind === 'binary' || kind === 'log' ? undefined : kind
}

export class Scan {
  readonly #options: ScanOptions
  readonly #constants = new Constants()
  readonly #candidates: Candidate[] = []
  /** Places of definitions whose path is used elsewhere: the call is there. */
  readonly #used = new Set<string>()
  readonly #mentioning = new Set<string>()

  constructor(options: ScanOptions = {}) {
    this.#options = options
  }

  /** First all files: what they give names to. */
  survey(file: string, text: string): void {
    const kind = kindOfText(file, text)
    if (kind === undefined) return
    if (/orka|macstadium/i.test(file) || /orka|macstadium/i.test(text)) this.#mentioning.add(file)
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
    if (kind !== undefined)
      for (const candidate of this.#candidatesIn(kind, new Source(file, text))) this.#candidates.push(candidate)
  }

  #candidatesIn(kind: TextKind, source: Source): readonly Candidate[] {
    const isUsed = (definition: Definition, path: string): void => {
      this.#used.add(`${definition.file}\0${definition.line}\0${path}`)
    }
    if (kind === 'shell') return shellCandidates(source, this.#constants, isUsed)
    if (kind === 'json') return this.#jsonCandidates(source)
    if (kind === 'yaml') {
      const entries = entriesOf(source.text)
      return isOpenApiYaml(entries)
        ? openApiYamlCandidates(entries, source)
        : yamlCandidates(entries, source, this.#constants, isUsed)
    }
    if (kind === 'prose' || kind === 'requests') return this.#proseCandidates(source, kind === 'requests')
    return new Program(source, kind).candidates(this.#constants, isUsed)
  }

  #jsonCandidates(source: Source): readonly Candidate[] {
    const root = readJson(source.text)
    if (!root) return this.#candidatesIn('settings', source)
    return isOpenApiJson(root) ? openApiJsonCandidates(root, source) : requestCandidates(root, source, this.#constants)
  }

  #proseCandidates(source: Source, isRequests: boolean): Candidate[] {
    const { candidates, blocks } = proseOf(source, isRequests)
    const inBlocks = blocks.flatMap(({ language, text, line: first }): readonly Candidate[] => {
      const kind = kindOfFence(language)
      if (kind === undefined || kind === 'binary' || kind === 'log') return []
      const part = source.part(text, first)
      if (kind === 'requests') return proseOf(part, true).candidates
      const own = this.#candidatesIn(kind, part)
      if (language !== '' || own.length > 0) return own
      return text.split('\n').flatMap((line, at) => writtenIn(line, at + 1, part, false))
    })
    return [...candidates, ...inBlocks]
  }

  findings(): Finding[] {
    const candidates = this.#candidates.filter(({ file, line, match, isRequest }) =>
      isRequest && match.baseKind !== 'none' ? true : !this.#used.has(`${file}\0${line}\0${match.path}`),
    )
    const order = new Map([...new Set(candidates.map(({ file }) => file))].map((file, index) => [file, index]))
    return classify(candidates, {
      constants: this.#constants,
      mentionsProduct: (file) => this.#mentioning.has(file),
      options: this.#options,
    }).toSorted((a, b) => (order.get(a.file) ?? 0) - (order.get(b.file) ?? 0) || a.line - b.line || a.column - b.column)
  }
}
