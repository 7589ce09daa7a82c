// A text to scan, with the lines that its places are on.

export class Source {
  readonly file: string
  readonly text: string
  readonly #firstLine: number
  #starts: number[] | undefined

  constructor(file: string, text: string, firstLine = 1) {
    this.file = file
    this.text = text
    this.#firstLine = firstLine
  }

  /** A text in this file that begins on a line. */
  part(text: string, line: number): Source {
    return new Source(this.file, text, this.#firstLine + line - 1)
  }

  #index(at: number): number {
    this.#starts ??= [0, ...Array.from(this.text.matchAll(/\n/g), ({ index }) => index + 1)]
    let [low, high] = [0, this.#starts.length]
    while (high - low > 1) {
      const middle = (low + high) >> 1
      if ((this.#starts[middle] as number) <= at) low = middle
      else high = middle
    }
    return low
  }

  /** A text in this file that begins at a place. */
  partAt(text: string, at: number): Source {
    return new Source(this.file, text, this.lineOf(at))
  }

  place(at: number): { readonly file: string; readonly line: number; readonly column: number } {
    return { file: this.file, line: this.lineOf(at), column: at - this.lineStart(at) + 1 }
  }

  lineOf(at: number): number {
    return this.#firstLine + this.#index(at)
  }

  lineStart(at: number): number {
    const index = this.#index(at)
    return this.#starts?.[index] ?? 0
  }

  /** What stands there, as one line of bounded length. */
  snippet(from: number, to: number): string {
    return (
      this.text
        .slice(from, Math.min(to, from + 160))
        .split('\n', 1)[0]
        ?.trim() ?? ''
    )
  }
}
