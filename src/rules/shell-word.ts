// Quoting for lines that users paste into a shell.

/** Quotes a word if a shell would read it differently. */
export const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
