// Which of the machine's package sources are used: Debian's, for the guest's architecture.
import fs from 'node:fs/promises'
import path from 'node:path'
import { readFileIfPresent } from '../../src/platform/files.ts'

interface Sources {
  /** One-line format: `deb URI SUITE COMPONENTS`. */
  readonly list: string
  /** Format with one field per line. */
  readonly stanzas: string
}

const etc = '/etc/apt'
const isDebian = (text: string): boolean => /\bdebian\.org\b|\/debian(-security)?\/?(\s|$)/m.test(text)
const hasMain = (text: string): boolean => /\bmain\b/.test(text)

export async function machineSources(): Promise<Sources> {
  const parts = (await fs.readdir(path.join(etc, 'sources.list.d')).catch(() => [])).sort()
  const files = ['sources.list', ...parts.map((name) => path.join('sources.list.d', name))]
  const texts = await Promise.all(
    files.map(async (file) => ({ file, text: (await readFileIfPresent(path.join(etc, file))) ?? '' })),
  )
  const of = (extension: string): string =>
    texts.flatMap(({ file, text }) => (file.endsWith(extension) ? [text] : [])).join('\n\n')
  return chooseSources({ list: of('.list'), stanzas: of('.sources') })
}

/**
 * Debian's sources, or all of them if none looks like Debian's (a mirror of another name): apt's preferences accept only
 * what calls itself Debian. Limits to the host's architecture are removed.
 */
export function chooseSources({ list, stanzas }: Sources): Sources {
  const lines = list.split('\n').filter((line) => /^\s*deb\s/.test(line))
  const blocks = stanzas.split(/\n\s*\n/).filter((block) => /^Types:.*\bdeb\b/m.test(block) && !isDisabled(block))
  const isWanted = [...lines, ...blocks].some(isMain) ? isMain : () => true
  return {
    list: lines.filter(isWanted).map(anyArchitecture).map(endLine).join(''),
    stanzas: blocks
      .filter(isWanted)
      .map((block) => endLine(block.replace(/^(Architectures|Types):.*\n?/gm, '').replace(/^/, 'Types: deb\n')))
      .join('\n'),
  }
}

const isMain = (text: string): boolean => isDebian(text) && hasMain(text)
const isDisabled = (block: string): boolean => /^Enabled:\s*no/im.test(block)
const endLine = (text: string): string => `${text.trim()}\n`
const anyArchitecture = (line: string): string =>
  line.replace(/\[([^[\]]*)\]/, (_, options: string) => {
    const kept = options.split(/\s+/).filter((option) => option !== '' && !option.startsWith('arch'))
    return kept.length > 0 ? `[${kept.join(' ')}]` : ''
  })
