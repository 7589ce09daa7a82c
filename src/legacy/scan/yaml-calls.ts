// Legacy calls in YAML: scripts of pipelines, and addresses with a method beside them.
import type { Constants, Definition } from './constants.ts'
import type { Candidate } from './finding.ts'
import { matchOf } from './match.ts'
import { Program } from './program.ts'
import { shellCandidates, shellDefine } from './shell.ts'
import type { Source } from './source.ts'
import { isMethodKey, methodOfWord } from './verbs.ts'
import { templateOf } from './words.ts'
import type { Entry } from './yaml.ts'

const script = /\b(?:curl|wget|Invoke-RestMethod|Invoke-WebRequest|iwr|irm)\b/i
const isFlow = (value: string): boolean => /^(?:\[|\{(?!\{))/.test(value)
/** Places of YAML and of scripts in it are counted alike. */
const placeOf = (line: number): number => line * 4_096

const isScript = ({ value, isBlock }: Entry): boolean =>
  !isFlow(value) && (script.test(value) || (isBlock && value.includes('=')))

export function yamlDefine(entries: readonly Entry[], source: Source, constants: Constants): void {
  for (const entry of entries) {
    const { key, value, line, valueLine } = entry
    if (isScript(entry)) shellDefine(source.part(value, valueLine), constants)
    else if (/^[A-Za-z_][\w.-]*$/.test(key) && value !== '' && value.length < 500)
      constants.add({
        name: key,
        value: templateOf(value),
        file: source.file,
        line: source.lineOf(0) + line - 1,
        at: 0,
        until: Number.POSITIVE_INFINITY,
        isConstant: false,
      })
  }
}

export function yamlCandidates(
  entries: readonly Entry[],
  source: Source,
  constants: Constants,
  isUsed: (definition: Definition, path: string) => void,
): Candidate[] {
  const methods = new Map<number, string | undefined>()
  for (const { key, value, group } of entries) if (isMethodKey(key)) methods.set(group, methodOfWord(value))
  return entries.flatMap((entry): Candidate[] => {
    const { key, value, group, valueLine, line } = entry
    if (isScript(entry)) return shellCandidates(source.part(value, valueLine), constants, isUsed)
    if (isFlow(value))
      return new Program(source.part(value.replaceAll(' \\\n', '\n'), valueLine), 'settings').candidates(
        constants,
        isUsed,
      )
    if (entry.isBlock || value === '' || value.length > 600) return []
    const { parts, used } = constants.resolve(templateOf(value), source.file, placeOf(line))
    const match = matchOf(parts)
    const isRequest = methods.has(group) || /^(?:url|uri)$/i.test(key)
    if (!match || !isAddressed(key, methods.has(group), match.baseKind)) return []
    if (isRequest) for (const each of used) isUsed(each, match.path)
    const method = methods.get(group) ?? (isRequest && !methods.has(group) ? 'GET' : undefined)
    const isFitting = match.calls.some(({ call }) => call.method === method)
    const column = entry.indent + key.length + 3
    return [
      {
        file: source.file,
        line: source.lineOf(0) + line - 1,
        column,
        text: value,
        match,
        method: isFitting || methods.has(group) ? method : undefined,
        isRequest,
        mentionsProduct: false,
        receiver: 'yaml',
      },
    ]
  })
}

/** A path alone may be one of a file. */
const isAddressed = (key: string, hasMethod: boolean, baseKind: string): boolean =>
  baseKind === 'none' ? hasMethod && !/^(?:src|dest|file)$/.test(key) : !/^(?:src|dest|path|file)$/.test(key)
