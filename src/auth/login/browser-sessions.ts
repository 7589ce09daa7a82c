// Browser sessions. A session is a record under a keyed hash of the browser's cookie, with the principal and, sealed, the
// refresh token of the identity provider. No token is stored, and deleting the record logs out every tab on every server.
// Revoking the signing keys changes the key of the hash, so that existing cookies and tickets match no record. Sealing
// covers the other fields, so an altered record does not open and counts as no session.
import { createHmac, randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { decodeJwt } from 'jose'
import { ApiError } from '../../api/errors.ts'
import { type Clock, timestamp } from '../../platform/clock.ts'
import type { BrowserSessionRecord, Collections } from '../../store/records/collections.ts'
import { type Entry, ignoreLost } from '../../store/store.ts'
import type { Accounts } from '../accounts.ts'
import { type AgentPrincipal, callerKey, type Principal, type ServerPrincipal, type User } from '../principal.ts'
import { SealError } from '../seal.ts'
import type { Secrets } from '../secrets.ts'
import { type Tokens, userTokenSeconds } from '../tokens.ts'

export type Person = Exclude<Principal, AgentPrincipal | ServerPrincipal>

export interface BrowserSession {
  readonly principal: Person
  readonly expiresAt: Date
  /** Whether the identity provider can renew it. */
  readonly isRenewable: boolean
}

/** A login at an identity provider, which the refresh token renews. */
export interface ProviderLogin {
  readonly user: User
  readonly refreshToken: string | undefined
}

interface Ticket {
  readonly ticket: string
  readonly expiresAt: string
}

/** A principal, and how many seconds its token is valid. */
interface Bearer {
  readonly principal: Person
  readonly seconds: number
}

/** Returns undefined if the provider has ended the login. Throws if it does not respond. */
type Refresh = (refreshToken: string) => Promise<ProviderLogin | undefined>

/** A session ends after this time, however often it is renewed. */
const maxSessionSeconds = 7 * 24 * 3_600
const ticketSessionSeconds = 24 * 3_600
/** For the link that is printed when the service starts. */
const startTicketSeconds = 24 * 3_600
/** For a link that is opened immediately. */
const shortTicketSeconds = 300
/** The oldest session is deleted when a caller opens more. */
const maxPerCaller = 50
/** A session with less time left is renewed. */
const renewBeforeSeconds = 300
/** A server renews a session alone, because a refresh token can be used once. Its claim expires after this time. */
const claimMs = 20_000
const claimCheckMs = 100

interface BrowserSessionsInput {
  readonly collections: Pick<Collections, 'browserSessions'>
  readonly secrets: Secrets
  readonly tokens: Tokens
  readonly isCurrent: Accounts['isCurrent']
  /** The key of the hashes. It changes when all logins are revoked. */
  readonly nameSecret: () => Buffer
  readonly clock: Clock
}

const unauthorized = (message: string, hint: string): ApiError =>
  new ApiError('Unauthorized', `Unauthorized: ${message}`, { hint })

const usedTicket = (): ApiError =>
  unauthorized('this link was used before or has expired', 'Run svc3 console for a new link')

const sessionName = (id: string, secret: Buffer): string => createHmac('sha256', secret).update(id).digest('base64url')
/** Differs from the names of all sessions, because ids have no spaces. */
const ticketName = (ticket: string, secret: Buffer): string => sessionName(`ticket ${ticket}`, secret)

type Session = Entry<BrowserSessionRecord>
type Fields = Omit<BrowserSessionRecord, 'sealed'>

export class BrowserSessions {
  readonly #input: BrowserSessionsInput
  readonly #sessions: Collections['browserSessions']
  /** Renewals in progress in this process, by key. */
  readonly #renewals = new Map<string, Promise<void>>()

  constructor(input: BrowserSessionsInput) {
    this.#input = input
    this.#sessions = input.collections.browserSessions
  }

  /** Called for every request, and therefore synchronous. */
  find(id: string): BrowserSession | undefined {
    const entry = this.#sessionOf(id)
    if (!entry || Date.parse(entry.value.expiresAt) <= this.#nowMs()) return undefined
    const { principal, expiresAt } = entry.value
    return { principal, expiresAt: new Date(expiresAt), isRenewable: this.#refreshTokenOf(entry) !== '' }
  }

  /** Opens a session that ends with the token, at the latest. Throws Unauthorized. Returns the cookie's value. */
  async openByToken(token: string): Promise<string> {
    const secret = this.#input.nameSecret()
    const { principal, seconds } = await this.#bearerOf(token)
    return this.#open(secret, principal, seconds)
  }

  openByProvider({ user, refreshToken }: ProviderLogin): Promise<string> {
    return this.#open(this.#input.nameSecret(), user, userTokenSeconds, refreshToken)
  }

  /** A ticket opens one session, on any server. Throws Unauthorized. */
  async openByTicket(ticket: string): Promise<string> {
    const secret = this.#input.nameSecret()
    const entry = this.#sessions.get('', ticketName(ticket, secret))
    const isValid =
      entry && Date.parse(entry.value.expiresAt) > this.#nowMs() && this.#refreshTokenOf(entry) !== undefined
    if (!isValid || !this.#input.isCurrent(entry.value.principal)) throw usedTicket()
    // Of concurrent requests with the ticket, only one deletes its record.
    await this.#sessions.delete(entry).catch((error: unknown) => {
      ignoreLost(error)
      throw usedTicket()
    })
    const { principal, sessionEndsAt } = entry.value
    if (sessionEndsAt === undefined) return this.#open(secret, principal, ticketSessionSeconds)
    const leftSeconds = Math.floor((Date.parse(sessionEndsAt) - this.#nowMs()) / 1_000)
    if (leftSeconds <= 0) throw usedTicket()
    return this.#open(secret, principal, leftSeconds)
  }

  /** Issues a ticket for a link that logs a browser in. */
  issueTicket(principal: Person): Promise<Ticket> {
    return this.#issue(this.#input.nameSecret(), principal, startTicketSeconds)
  }

  /** As `issueTicket`, for the holder of a token, with which the session ends at the latest. Throws Unauthorized. */
  async issueTicketFor(token: string): Promise<Ticket> {
    const secret = this.#input.nameSecret()
    const { principal, seconds } = await this.#bearerOf(token)
    return this.#issue(secret, principal, Math.min(shortTicketSeconds, seconds), this.#after(seconds))
  }

  /** As `find`, after a renewal at the provider if that is due. Returns undefined if the login has ended. */
  async renewed(id: string, refresh: Refresh): Promise<BrowserSession | undefined> {
    for (;;) {
      const entry = this.#sessionOf(id)
      if (!entry) return undefined
      const { expiresAt, renewingUntil = 0 } = entry.value
      const isDue = Date.parse(expiresAt) - this.#nowMs() < renewBeforeSeconds * 1_000
      if (!isDue || this.#refreshTokenOf(entry) === '') return this.find(id)
      const running = this.#renewals.get(entry.key)
      if (!running && renewingUntil > this.#nowMs()) {
        // Another server is renewing it. Only an expired session has to wait for that.
        const session = this.find(id)
        if (session) return session
        await sleep(claimCheckMs)
        continue
      }
      const renewal = running ?? this.#renew(entry, refresh).finally(() => this.#renewals.delete(entry.key))
      this.#renewals.set(entry.key, renewal)
      try {
        await renewal
        return this.find(id)
      } catch (error) {
        // Another server renewed it first, or the user logged out. The loop reads the record again.
        ignoreLost(error)
      }
    }
  }

  /** Deletes the session, or all of its caller. Returns their refresh tokens, to be revoked at the provider. */
  async close(id: string, isEverywhere: boolean): Promise<readonly string[]> {
    const entry = this.#sessions.get('', sessionName(id, this.#input.nameSecret()))
    if (!entry) return []
    const closed = isEverywhere ? this.#ofCaller(entry.value.principal) : [entry]
    const refreshTokens = closed.flatMap((each) => this.#refreshTokenOf(each) || [])
    await Promise.all(closed.map(({ key }) => this.#sessions.change(key, () => null)))
    return refreshTokens
  }

  #nowMs(): number {
    return this.#input.clock.now().getTime()
  }

  #after(seconds: number): string {
    return timestamp(new Date(this.#nowMs() + seconds * 1_000))
  }

  /** Returns '' if there is none, and undefined if the record was altered. */
  #refreshTokenOf(entry: Session): string | undefined {
    try {
      return this.#input.secrets.open(entry.key, entry.value)
    } catch (error) {
      if (error instanceof SealError) return undefined
      throw error
    }
  }

  /** Includes a session that has expired and may be renewed. */
  #sessionOf(id: string): Session | undefined {
    const entry = this.#sessions.get('', sessionName(id, this.#input.nameSecret()))
    if (!entry || Date.parse(entry.value.endsAt) <= this.#nowMs()) return undefined
    return this.#refreshTokenOf(entry) !== undefined && this.#input.isCurrent(entry.value.principal) ? entry : undefined
  }

  #ofCaller(principal: Person): Session[] {
    return this.#sessions.list().filter(({ value }) => callerKey(value.principal) === callerKey(principal))
  }

  async #bearerOf(token: string): Promise<Bearer> {
    const principal = await this.#input.tokens.verify(token)
    if (!principal) throw unauthorized('the token is not valid here', 'Get a valid one with svc3 user get-token')
    if (principal.kind === 'agent' || principal.kind === 'server')
      throw unauthorized('this is the token of a node or a server', 'Use the token of a user or a service account')
    const { exp } = decodeJwt(token)
    const seconds = exp === undefined ? maxSessionSeconds : exp - Math.floor(this.#nowMs() / 1_000)
    if (seconds <= 0) throw unauthorized('the token has expired', 'Get another with svc3 user get-token')
    return { principal, seconds }
  }

  /** `secret` was read before the login was checked, so that a revocation in between also ends this session. */
  async #open(secret: Buffer, principal: Person, seconds: number, refreshToken = ''): Promise<string> {
    const id = randomBytes(32).toString('base64url')
    const expirySeconds = Math.min(seconds, maxSessionSeconds)
    const endSeconds = refreshToken === '' ? expirySeconds : maxSessionSeconds
    const times = { expiresAt: this.#after(expirySeconds), endsAt: this.#after(endSeconds) }
    await this.#create(sessionName(id, secret), principal, times, refreshToken)
    return id
  }

  async #issue(secret: Buffer, principal: Person, seconds: number, sessionEndsAt?: string): Promise<Ticket> {
    const ticket = randomBytes(24).toString('base64url')
    const expiresAt = this.#after(seconds)
    const limit = sessionEndsAt === undefined ? {} : { sessionEndsAt }
    await this.#create(ticketName(ticket, secret), principal, { expiresAt, endsAt: expiresAt, ...limit }, '')
    return { ticket, expiresAt }
  }

  async #create(
    name: string,
    principal: Person,
    times: Omit<Fields, 'principal' | 'createdAt'>,
    refreshToken: string,
  ): Promise<void> {
    const own = this.#ofCaller(principal).toSorted((a, b) => (a.value.createdAt < b.value.createdAt ? -1 : 1))
    for (const entry of own.slice(0, Math.max(0, own.length + 1 - maxPerCaller)))
      await this.#sessions.delete(entry).catch(ignoreLost)
    const fields: Fields = { principal, createdAt: timestamp(this.#input.clock.now()), ...times }
    await this.#input.secrets.sealing((protect) =>
      this.#sessions.create('', name, protect(this.#sessions.key('', name), fields, refreshToken)),
    )
  }

  async #renew(entry: Session, refresh: Refresh): Promise<void> {
    const { sealed: _, renewingUntil: __, ...fields } = entry.value
    const refreshToken = this.#refreshTokenOf(entry) ?? ''
    const claimed = await this.#rewrite(entry, { ...fields, renewingUntil: this.#nowMs() + claimMs }, refreshToken)
    let login: ProviderLogin | undefined
    try {
      login = await refresh(refreshToken)
    } catch (error) {
      await this.#rewrite(claimed, fields, refreshToken).catch(ignoreLost)
      throw error
    }
    if (!login || callerKey(login.user) !== callerKey(fields.principal))
      return void (await this.#sessions.delete(claimed).catch(ignoreLost))
    const next = { ...fields, principal: login.user, expiresAt: this.#after(userTokenSeconds) }
    await this.#rewrite(claimed, next, login.refreshToken ?? refreshToken)
  }

  #rewrite(entry: Session, fields: Fields, refreshToken: string): Promise<Session> {
    return this.#input.secrets.sealing((protect) =>
      this.#sessions.update(entry, protect(entry.key, fields, refreshToken)),
    )
  }
}
