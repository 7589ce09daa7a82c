// Finds the known word that is nearest to a mistyped one.

/** The nearest candidate, if it is near enough. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  if (word.length > 40) return undefined
  const lower = word.toLowerCase()
  const begins = lower.length >= 2 ? candidates.find((candidate) => candidate.startsWith(lower)) : undefined
  if (begins !== undefined) return begins
  const [best] = candidates
    .map((candidate) => ({ candidate, distance: distanceBetween(lower, candidate) }))
    .sort((a, b) => a.distance - b.distance)
  const allowed = Math.max(1, Math.floor((best?.candidate.length ?? 0) / 3))
  return best && best.distance <= allowed ? best.candidate : undefined
}

export const didYouMean = (word: string, candidates: readonly string[]): string => {
  const found = nearest(word, candidates)
  return found === undefined ? '' : `. Did you mean ${found}?`
}

/** The Damerau–Levenshtein distance, in which two swapped letters count once. */
function distanceBetween(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, column) => column)]
  const at = (row: number, column: number): number => rows[row]?.[column] ?? 0
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    rows.push(row)
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? at(i - 2, j - 2) + 1 : Infinity
      row.push(Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + cost, swapped))
    }
  }
  return at(a.length, b.length)
}

/**
 * Suggests the name of a record. Stricter than for commands: names that differ only in digits name different records (except
 * in an architecture), and a common scheme does not make two addresses similar.
 */
export function nearestName(name: string, names: readonly string[]): string | undefined {
  const plain = (text: string): string => text.toLowerCase().replace(/^https?:\/\//, '')
  const withoutDigits = (text: string): string =>
    plain(text).replaceAll(/(amd|arm)?\d+/g, (digits, architecture?: string) => (architecture ? digits : '#'))
  const wanted = plain(name)
  if (wanted.length < 2 || wanted.length > 80) return undefined
  const [best] = names
    .filter((candidate) => candidate !== name && (!/\d/.test(name) || withoutDigits(candidate) !== withoutDigits(name)))
    .map((candidate) => {
      const begins = wanted.length >= 3 && plain(candidate).startsWith(wanted)
      return { candidate, distance: begins ? 1 : distanceBetween(wanted, plain(candidate)) }
    })
    .sort((a, b) => a.distance - b.distance)
  return best && best.distance <= Math.max(1, Math.floor(wanted.length / 5)) ? best.candidate : undefined
}
