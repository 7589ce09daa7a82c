// Characters as X11 key symbols, which is how VNC names keys. Pure.

const named: Readonly<Record<string, number>> = { '\n': 0xff0d, '\r': 0xff0d, '\t': 0xff09, '\b': 0xff08 }

/** Latin-1 characters are their own symbols; all others are their code point with a mark. */
export function keysymOf(character: string): number {
  const code = character.codePointAt(0) ?? 0
  return named[character] ?? (code < 0x100 ? code : 0x0100_0000 + code)
}
