// Keeps secrets out of words: addresses without what may be one, and texts of others without the ones we know.

/** Origin and path. User info, query (upload states, signatures) and fragment stay out. */
export function redactUrl(url: URL | string): string {
  const text = String(url)
  if (!URL.canParse(text)) return '(invalid address)'
  const { protocol, host, pathname } = new URL(text)
  return `${protocol}//${host}${pathname}`
}

const maxCharacters = 200

export interface Redactor {
  /** From now on it is kept out, in all its spellings; until it is forgotten. */
  add(secret: string): () => void
  /** What somebody else said: short, on one line, printable, without secrets. */
  words(text: string): string
}

export function createRedactor(): Redactor {
  const spellings = new Set<string>()
  return {
    add(secret) {
      const base64 = Buffer.from(secret).toString('base64')
      const forms = [
        secret,
        encodeURIComponent(secret),
        base64,
        base64.replaceAll('=', ''),
        JSON.stringify(secret).slice(1, -1),
      ]
      const spelled = forms.filter((form) => form !== '')
      for (const form of spelled) spellings.add(form)
      return () => {
        for (const form of spelled) spellings.delete(form)
      }
    },
    words(text) {
      let clean = text
      // The longest first: one may be a part of another.
      for (const spelling of [...spellings].sort((a, b) => b.length - a.length))
        clean = clean.replaceAll(spelling, '***')
      clean = clean.replace(/[^\x20-\x7e\u00a0-\uffff]+/g, ' ').trim()
      return clean.length > maxCharacters ? `${clean.slice(0, maxCharacters)}…` : clean
    },
  }
}
