// Words in lines that people paste into a shell.

/** The word, in quotes where a shell would read it differently. */
export const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
