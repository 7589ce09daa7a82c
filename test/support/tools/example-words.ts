// Parses an example of a help text like a shell: the words after the program's name, and the input file.

interface ExampleWords {
  readonly words: string[]
  /** The file for standard input. */
  readonly input: string | undefined
}

/** Undefined if the line does not call svc3. */
export function exampleWords(line: string): ExampleWords | undefined {
  const match = /(?:^|\| |\$\()svc3 ((?:"[^"]*"|[^<|>)"])*)(?:< (\S+))?/.exec(line)
  if (!match) return undefined
  const words = [...(match[1] ?? '').matchAll(/"([^"]*)"|\S+/g)].map(([word, quoted]) => quoted ?? word)
  return { words, input: match[2] }
}
