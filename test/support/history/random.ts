// Random choices that are reproducible by their seed.

export interface Random {
  next(): number
  /** Both included. */
  integer(from: number, to: number): number
  pick<T>(choices: readonly T[]): T
  chance(probability: number): boolean
  /** An independent sequence, determined by this seed and the name. */
  named(name: string): Random
}

export function seeded(seed: string): Random {
  let state = hash(seed)
  // The generator is mulberry32.
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const integer = (from: number, to: number): number => from + Math.floor(next() * (to - from + 1))
  return {
    next,
    integer,
    pick: <T>(choices: readonly T[]): T => choices[integer(0, choices.length - 1)] as T,
    chance: (probability) => next() < probability,
    named: (name) => seeded(`${seed}/${name}`),
  }
}

/** FNV-1a. */
const hash = (text: string): number =>
  Buffer.from(text).reduce((sum, byte) => Math.imul(sum ^ byte, 0x01000193), 0x811c9dc5)
