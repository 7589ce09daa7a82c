// What a list that came again has other than before, so that a table costs what has changed and not what it holds. Pure.

interface Changes<T> {
  readonly gone: readonly T[]
  readonly come: readonly T[]
}

/** By identity: a record that was changed is another object. Nearly always at the same place, so that one look at each is enough. */
export function changesBetween<T>(before: readonly T[], now: readonly T[]): Changes<T> {
  const gone: T[] = []
  const come: T[] = []
  let [b, n] = [0, 0]
  while (b < before.length && n < now.length) {
    if (before[b] === now[n]) [b, n] = [b + 1, n + 1]
    else if (before[b + 1] === now[n]) gone.push(before[b++] as T)
    else if (before[b] === now[n + 1]) come.push(now[n++] as T)
    else {
      gone.push(before[b++] as T)
      come.push(now[n++] as T)
    }
  }
  gone.push(...before.slice(b))
  come.push(...now.slice(n))
  // Where the places do not match, some are said to have gone and to have come.
  const both = new Set(come)
  const stayed = new Set(gone.filter((row) => both.has(row)))
  if (stayed.size === 0) return { gone, come }
  const others = (rows: readonly T[]): readonly T[] => rows.filter((row) => !stayed.has(row))
  return { gone: others(gone), come: others(come) }
}
