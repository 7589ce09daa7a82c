// Keeps secrets out of messages.

/** Leaves out user info, query (upload states, signatures) and fragment. */
export function redactUrl(url: URL | string): string {
  const text = String(url)
  if (!URL.canParse(text)) return '(invalid address)'
  const { protocol, host, pathname } = new URL(text)
  return `${protocol}//${host}${pathname}`
}

const maxCharacters = 200
/** Tokens are renewed every few minutes. Responses rarely contain one that was replaced long ago. */
const maxTokens = 50

export class Redactor {
  readonly #passwords: readonly string[]
  readonly #tokens: string[] = []

  constructor(passwords: readonly string[]) {
    this.#passwords = passwords
  }

  addToken(token: string): void {
    this.#tokens.push(token)
    if (this.#tokens.length > maxTokens) this.#tokens.shift()
  }

  /** Text of another program, made short and printable, without secrets. */
  words(text: string): string {
    const spellings = [...this.#passwords, ...this.#tokens].flatMap(spellingsOf)
    let clean = text
    // Longest first, because one may contain another.
    for (const spelling of spellings.sort((a, b) => b.length - a.length)) clean = clean.replaceAll(spelling, '***')
    clean = clean.replace(/[^\x20-\x7e\u00a0-\uffff]+/g, ' ').trim()
    return clean.length > maxCharacters ? `${clean.slice(0, maxCharacters)}…` : clean
  }
}

function spellingsOf(secret: string): readonly string[] {
  if (secret === '') return []
  const base64 = Buffer.from(secret).toString('base64')
  return [secret, encodeURIComponent(secret), base64, base64.replaceAll('=', ''), JSON.stringify(secret).slice(1, -1)]
}
