// People and service accounts as they are typed into a field. Pure.

export const parseNames = (text: string): string[] =>
  text
    .split(/[\s,;]+/)
    .map((each) => each.trim())
    .filter((each) => each !== '')

/** `NAMESPACE:NAME`; without a namespace, the one that is shown. */
export const parseAccounts = (text: string, namespace: string): { name: string; namespace: string }[] =>
  parseNames(text).map((each) => {
    const at = each.indexOf(':')
    return at < 0 ? { name: each, namespace } : { name: each.slice(at + 1), namespace: each.slice(0, at) }
  })
