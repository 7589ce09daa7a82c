// What was typed into forms, kept by this tab over a reload. A form that is closed leaves nothing behind, and neither does
// whoever logs out. Fields decide what they keep: those of secrets keep nothing.
const prefix = 'svc3.draft '

type Draft = Readonly<Record<string, string | boolean>>

/** Of the form with these values at first, on this page. */
export const draftKey = (initial: object): string => `${prefix}${location.pathname} ${JSON.stringify(initial)}`

export function readDraft(key: string): Draft {
  try {
    const value: unknown = JSON.parse(sessionStorage.getItem(key) ?? '{}')
    // This page wrote it.
    return typeof value === 'object' && value !== null ? (value as Draft) : {}
  } catch {
    return {}
  }
}

export function keepInDraft(key: string, name: string, value: string | boolean): void {
  try {
    sessionStorage.setItem(key, JSON.stringify({ ...readDraft(key), [name]: value }))
  } catch {
    // No room, or not allowed: it is lost with the page, as it would be without this.
  }
}

export const dropDraft = (key: string): void => sessionStorage.removeItem(key)

export function dropAllDrafts(): void {
  for (const key of Object.keys(sessionStorage)) if (key.startsWith(prefix)) sessionStorage.removeItem(key)
}
