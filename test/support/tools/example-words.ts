// An example of a help text as a shell would run it: the words after the program's name, and the file it reads.

interface ExampleWords {
  readonly words: string[]
  /** Standard input comes from this file. */
  readonly input: string | undefined
}

/** Undefined when the line does not call svc3. */
export function exampleWords(line: string): ExampleWords | undefined {
  const match = /(?:^|\| |\$\()svc3 ((?:"[^"]*"|[^<|>)"])*)(?:< (\S+))?/.exec(line)
  if (!match) return undefined
  const words = [...(match[1] ?? '').matchAll(/"([^"]*)"|\S+/g)].map(([word, quoted]) => quoted ?? word)
  return { words, input: match[2] }
}
