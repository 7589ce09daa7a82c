// Parses the users and service accounts typed into a field.

export const parseNames = (text: string): string[] =>
  text
    .split(/[\s,;]+/)
    .map((each) => each.trim())
    .filter((each) => each !== '')

/** Entries are `NAMESPACE:NAME`, or `NAME` in the given namespace. */
export const parseAccounts = (text: string, namespace: string): { name: string; namespace: string }[] =>
  parseNames(text).map((each) => {
    const at = each.indexOf(':')
    return at < 0 ? { name: each, namespace } : { name: each.slice(at + 1), namespace: each.slice(0, at) }
  })
