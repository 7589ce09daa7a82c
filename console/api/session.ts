// The login session. The session cookie is HttpOnly; this module knows the user's name and the expiry, keeps tabs in
// step, and asks for a new login without discarding what is on the page.
import { useSyncExternalStore } from 'react'
import { ApiError } from '../../src/api/errors.ts'
import { isObject, parseJson } from '../../src/api/json.ts'
import { errorFromAnswer } from '../../src/client/answer.ts'
import { dropAllDrafts } from '../drafts.ts'
import { createListeners } from './listeners.ts'
import { sessionHeader } from './page-transport.ts'
import { consoleUrl } from './urls.ts'

interface Person {
  readonly name: string
  readonly admin: boolean
  readonly kind?: 'user' | 'serviceaccount'
  readonly namespace?: string
}

interface Answer {
  readonly user: Person | null
  readonly expiresAt: string | null
  readonly renewable: boolean
  readonly login: { readonly provider: boolean; readonly builtIn: boolean }
  readonly problem?: string
}

interface SessionState {
  readonly phase: 'loading' | 'out' | 'in' | 'ended' | 'unreachable'
  /** The last known user. Kept after the session has ended, so that the page stays. */
  readonly person: Person | undefined
  /** Which kind of provider logs users in with a password; undefined without one. */
  readonly provider: 'builtIn' | 'own' | undefined
  readonly problem: string | undefined
}

const url = new URL('session', consoleUrl)
const tabs = new BroadcastChannel(`svc3-session ${consoleUrl.pathname}`)
const listeners = createListeners()
/** How long before its expiry the session is renewed. */
const earlyMs = 120_000
const longestTimerMs = 3_600_000

let state: SessionState = { phase: 'loading', person: undefined, provider: undefined, problem: undefined }
let timer: number | undefined
/** Responses of older requests are dropped: a check sent before a login must not undo the login. */
let latestRequest = 0

function set(change: Partial<SessionState>): void {
  state = { ...state, ...change }
  listeners.notify()
}

export const useSession = (): SessionState => useSyncExternalStore(listeners.subscribe, () => state)

async function ask(method: string, body?: unknown, search = ''): Promise<Answer | undefined> {
  const response = await fetch(new URL(search, url), {
    method,
    credentials: 'same-origin',
    cache: 'no-store',
    headers: { ...sessionHeader, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok)
    throw errorFromAnswer(response.status, text, url.href, response.headers.get('retry-after') ?? undefined)
  const value = parseJson(text)
  // The response comes from our own server, so its shape is not checked.
  return isObject(value) ? (value as unknown as Answer) : undefined
}

function applyAnswer(answer: Answer | undefined): void {
  if (!answer) return
  const { user, expiresAt, login, problem } = answer
  const provider = !login.provider ? undefined : login.builtIn ? 'builtIn' : 'own'
  const before = state.person
  clearTimeout(timer)
  if (user) {
    // Another user logged in: data of the previous user must not stay in memory.
    if (before && before.name !== user.name) {
      dropAllDrafts()
      location.reload()
      return
    }
    set({ phase: 'in', person: user, provider, problem: undefined })
    if (expiresAt) {
      const inMs = Math.min(longestTimerMs, Math.max(5_000, Date.parse(expiresAt) - Date.now() - earlyMs))
      timer = window.setTimeout(() => void checkSession(), inMs)
    }
  } else set({ phase: before ? 'ended' : 'out', provider, problem })
}

/** Fetches the session: at start, before it expires, and after a 401. */
export async function checkSession(): Promise<void> {
  latestRequest += 1
  const request = latestRequest
  try {
    const answer = await ask('GET')
    if (request === latestRequest) applyAnswer(answer)
  } catch {
    if (request !== latestRequest) return
    if (state.phase === 'loading') set({ phase: 'unreachable' })
    clearTimeout(timer)
    timer = window.setTimeout(() => void checkSession(), 2_000)
  }
}

export async function logIn(token: string): Promise<void> {
  await enter({ token })
}

async function enter(by: { token: string } | { ticket: string }): Promise<void> {
  const answer = await ask('POST', by)
  latestRequest += 1
  applyAnswer(answer)
  tabs.postMessage('in')
}

/** Reloads the page so that no data of the user stays in memory. */
export async function logOut(isEverywhere: boolean): Promise<void> {
  await ask('DELETE', undefined, isEverywhere ? '?everywhere=true' : '')
  dropAllDrafts()
  tabs.postMessage('out')
  location.assign(consoleUrl.href)
}

/** The provider redirects back to the current page. */
export function providerUrl(path: string): string {
  const target = new URL('login', consoleUrl)
  target.searchParams.set('to', path.replace(/^\//, ''))
  return target.href
}

/** `svc3 dev` and `svc3 console` print links with a one-time ticket. It is removed from the address bar first. */
async function takeTicket(): Promise<void> {
  const ticket = /^#ticket=(.+)$/.exec(location.hash)?.[1]
  if (ticket === undefined) return
  history.replaceState(null, '', location.pathname + location.search)
  const wasIn = state.phase === 'in'
  try {
    await enter({ ticket: decodeURIComponent(ticket) })
  } catch (error) {
    // A used link is no error for a user who is already logged in.
    if (!wasIn)
      set({
        problem:
          error instanceof ApiError
            ? error.options.hint === undefined
              ? error.message
              : `${error.message}. ${error.options.hint}.`
            : String(error),
      })
  }
}

/** Discards the data of a user who logged out in another tab. */
function leave(): void {
  dropAllDrafts()
  location.reload()
}

export async function beginSession(): Promise<void> {
  tabs.addEventListener('message', ({ data }) => (data === 'out' ? leave() : void checkSession()))
  document.addEventListener('visibilitychange', () => document.hidden || void checkSession())
  await checkSession()
  await takeTicket()
}
