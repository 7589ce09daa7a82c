// Keeps secrets out of messages.

/** Leaves out user info, query (upload states, signatures) and fragment. */
export function redactUrl(url: URL | string): string {
  const text = String(url)
  if (!URL.canParse(text)) return '(invalid address)'
  const { protocol, host, pathname } = new URL(text)
  return `${protocol}//${host}${pathname}`
}

const maxCharacters = 200

export interface Redactor {
  /** Redacts the secret in all its encodings. Returns a function that ends this. */
  add(secret: string): () => void
  /** Text of another program, made short and printable, without secrets. */
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
      // Longest first, because one may contain another.
      for (const spelling of [...spellings].sort((a, b) => b.length - a.length))
        clean = clean.replaceAll(spelling, '***')
      clean = clean.replace(/[^\x20-\x7e\u00a0-\uffff]+/g, ' ').trim()
      return clean.length > maxCharacters ? `${clean.slice(0, maxCharacters)}…` : clean
    },
  }
}
