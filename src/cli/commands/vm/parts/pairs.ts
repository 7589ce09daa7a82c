// Parses KEY=VALUE[,KEY=VALUE] options, given once or several times.
import { UsageError } from '../../../line/usage.ts'

interface Pairs {
  /** The option with its dashes. */
  readonly option: string
  /** Messages must not repeat values. */
  readonly isSecret?: true
}

/** Returns undefined if the option was not given. */
export function pairsOf(texts: readonly string[], { option, isSecret }: Pairs): Record<string, string> | undefined {
  const parts = texts.flatMap((text) => text.split(','))
  if (parts.length === 0) return undefined
  const pairs = new Map<string, string>()
  for (const [index, part] of parts.entries()) {
    const at = part.indexOf('=')
    const key = part.slice(0, at).trim()
    const shown = isSecret ? `part ${index + 1} of ${option}` : `"${part}" of ${option}`
    if (at < 1 || key === '')
      throw new UsageError(`Invalid ${shown}: specify KEY=VALUE`, `For example: ${option} a=b,c=d`)
    if (pairs.has(key)) throw new UsageError(`${option} has the key "${key}" twice`)
    pairs.set(key, part.slice(at + 1))
  }
  return Object.fromEntries(pairs)
}
