// Form values kept in sessionStorage over a reload. Closing the form or logging out deletes them. Fields for secrets
// are never kept.
import { isObject, parseJson } from '../src/api/json.ts'

const prefix = 'svc3.draft '

type Draft = Readonly<Record<string, string | boolean>>

export const draftKey = (about: string, initial: object): string =>
  `${prefix}${location.pathname} ${about} ${JSON.stringify(initial)}`

export function readDraft(key: string): Draft {
  const value = parseJson(sessionStorage.getItem(key) ?? '')
  // The page wrote this value, so its shape is trusted.
  return isObject(value) ? (value as Draft) : {}
}

export function keepInDraft(key: string, name: string, value: string | boolean): void {
  try {
    sessionStorage.setItem(key, JSON.stringify({ ...readDraft(key), [name]: value }))
  } catch {
    // Storage is full or forbidden: the draft is then lost on reload.
  }
}

export const dropDraft = (key: string): void => sessionStorage.removeItem(key)

export function dropAllDrafts(): void {
  for (const key of Object.keys(sessionStorage)) if (key.startsWith(prefix)) sessionStorage.removeItem(key)
}
