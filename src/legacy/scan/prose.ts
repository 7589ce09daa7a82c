// Legacy calls in what people write for each other: requests by method and path, commands, and blocks of code. Links and
// answers are none.
import type { Candidate } from './finding.ts'
import { matchOf } from './match.ts'
import type { Source } from './source.ts'
import { templateOf } from './words.ts'

interface Block {
  /** What the fence says: `bash`. */
  readonly language: string
  readonly text: string
  readonly line: number
}

const written = /(?<![\w-])(GET|POST|PUT|DELETE)[ \t]{1,4}([^\s`<>"'|)\]]{1,600})/g
const command = /(?:^|[\s`$(])(?:curl|wget)\s/
const longestLine = 20_000

interface Prose {
  readonly candidates: readonly Candidate[]
  readonly blocks: readonly Block[]
}

/** `isRequests`: a file of requests, such as `.http`. */
export function proseOf(source: Source, isRequests: boolean): Prose {
  const candidates: Candidate[] = []
  const blocks: Block[] = []
  const lines = source.text.split('\n')
  for (let index = 0; index < lines.length; index++) {
    const line = lines[index] as string
    if (line.length > longestLine) continue
    const fence = /^\s{0,12}(?:```|~~~)\s*([\w+-]*)/.exec(line)
    if (fence) {
      const start = index + 1
      while (index + 1 < lines.length && !/^\s{0,12}(?:```|~~~)/.test(lines[index + 1] as string)) index += 1
      blocks.push({
        language: (fence[1] ?? '').toLowerCase(),
        text: lines.slice(start, index + 1).join('\n'),
        line: start + 1,
      })
      index += 1
    } else if (command.test(line)) {
      const start = index
      while (/\\\s*$/.test(lines[index] ?? '') && index - start < 30) index += 1
      blocks.push({ language: 'sh', text: shellIn(lines.slice(start, index + 1)), line: start + 1 })
    } else candidates.push(...writtenIn(line, index + 1, source, isRequests))
  }
  return { candidates, blocks }
}

/** Without the marks of a list, a prompt or inline code. */
const shellIn = (lines: readonly string[]): string =>
  lines
    .map((line) => line.replace(/^[\s>*-]*(?:[`$]+\s*)?(?=curl|wget|[A-Z_]+=)/, '').replace(/`[^`]*$/, ''))
    .join('\n')

export function writtenIn(line: string, number: number, source: Source, isRequest: boolean): Candidate[] {
  return [...line.matchAll(written)].flatMap(({ 1: method, 2: address = '', index }): Candidate[] => {
    const match = matchOf(
      templateOf(address.replace(/(?<![.,;:*_])[.,;:*_]+$/, '').replaceAll(/\{([^{}]*)\}(?!\})/g, '$${x}')),
    )
    if (!match) return []
    return [
      {
        file: source.file,
        line: source.lineOf(0) + number - 1,
        column: index + 1,
        text: `${method} ${address}`,
        match,
        method,
        isRequest,
        mentionsProduct: false,
        receiver: 'written',
      },
    ]
  })
}
