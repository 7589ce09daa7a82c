// Logins of browsers. A session is a principal that stands in the store under a keyed hash of what the browser's cookie
// holds: no token is kept, and deleting the record logs out every tab on every server. Revoking the signing keys changes
// the key of the hash: no cookie and no ticket of before finds its record again. What an identity provider gave to renew
// it is sealed, and sealing binds the rest: a record that somebody altered is none.
import { createHmac, randomBytes } from 'node:crypto'
import { decodeJwt } from 'jose'
import { ApiError } from '../../api/errors.ts'
import { type Clock, timestamp } from '../../platform/clock.ts'
import type { BrowserSessionRecord, Collections } from '../../store/records/collections.ts'
import { type Entry, ignoreLost, isFault } from '../../store/store.ts'
import type { Accounts } from '../accounts.ts'
import { type AgentPrincipal, callerKey, type Principal, type ServerPrincipal, type User } from '../principal.ts'
import { SealError } from '../seal.ts'
import type { Secrets } from '../secrets.ts'
import { type Tokens, userTokenSeconds } from '../tokens.ts'

export type Person = Exclude<Principal, AgentPrincipal | ServerPrincipal>

export interface BrowserSession {
  readonly principal: Person
  readonly expiresAt: Date
  /** The provider can be asked to let it go on. */
  readonly isRenewable: boolean
}

/** Whom a provider named, and with what it can be asked again. */
export interface ProviderLogin {
  readonly user: User
  readonly refreshToken: string | undefined
}

interface Ticket {
  readonly ticket: string
  readonly expiresAt: string
}

/** Asks the provider again. Undefined: it says that the login is over. Throws when it does not answer. */
type Refresh = (refreshToken: string) => Promise<ProviderLogin | undefined>

export interface BrowserSessions {
  /** Who the holder of this id is, if anybody. Synchronous: it is asked with every request. */
  find(id: string): BrowserSession | undefined
  /** From a token that somebody pasted: lasts as long as the token, at most. Throws Unauthorized. */
  openByToken(token: string): Promise<string>
  openByProvider(login: ProviderLogin): Promise<string>
  /** Each ticket is good for one session, on any server. Throws Unauthorized. */
  openByTicket(ticket: string): Promise<string>
  /** For a link that logs a browser in. */
  issueTicket(principal: Person): Promise<Ticket>
  /** For the holder of a token: the session ends with the token, at most. Throws Unauthorized. */
  issueTicketFor(token: string): Promise<Ticket>
  /** As `find`, after asking the provider where that is due; undefined when the login is over. */
  renewed(id: string, refresh: Refresh): Promise<BrowserSession | undefined>
  /** Ends it, or all of the same caller. What the provider gave for it comes back, to be handed back there. */
  close(id: string, isEverywhere: boolean): Promise<readonly string[]>
}

/** However often it is renewed. */
const longestSeconds = 7 * 24 * 3_600
const ticketSessionSeconds = 24 * 3_600
/** The oldest goes when there would be more. */
const maxPerCaller = 50
/** Renewed when less is left. */
const earlySeconds = 300
/** One server at a time asks the provider: what it is asked with is good for one use. */
const claimMs = 20_000
const lookAgainMs = 100
/** Of the link that is printed once, when the service starts. */
const ticketSeconds = 24 * 3_600
/** Of a link that is opened at once. */
const shortTicketSeconds = 300

interface BrowserSessionsInput {
  readonly collections: Pick<Collections, 'browserSessions'>
  readonly secrets: Secrets
  readonly tokens: Tokens
  readonly isCurrent: Accounts['isCurrent']
  /** What names follow from: another one when all logins were revoked. */
  readonly nameSecret: () => Buffer
  readonly clock: Clock
}

const unauthorized = (message: string, hint: string): ApiError =>
  new ApiError('Unauthorized', `Unauthorized: ${message}`, { hint })

const spent = (): ApiError =>
  unauthorized('this link was used before or has expired', 'Run svc3 console for a new link')

const nameOf = (id: string, secret: Buffer): string => createHmac('sha256', secret).update(id).digest('base64url')
/** Never that of a session: ids have no spaces. */
const ticketName = (ticket: string, secret: Buffer): string => nameOf(`ticket ${ticket}`, secret)

type Fields = Omit<BrowserSessionRecord, 'sealed'>

export function createBrowserSessions(input: BrowserSessionsInput): BrowserSessions {
  const { secrets, tokens, isCurrent, nameSecret, clock } = input
  const sessions = input.collections.browserSessions
  /** A record is opened once, not with every request. */
  const opened = new WeakMap<Entry<BrowserSessionRecord>, string | null>()
  const renewals = new Map<string, Promise<void>>()
  const nowMs = (): number => clock.now().getTime()
  const after = (seconds: number): string => timestamp(new Date(nowMs() + seconds * 1_000))

  /** What it is renewed with ('' for nothing), or null: the record is not as we wrote it. */
  const secretOf = (entry: Entry<BrowserSessionRecord>): string | null => {
    const known = opened.get(entry)
    if (known !== undefined) return known
    const secret = openedSecret(entry)
    opened.set(entry, secret)
    return secret
  }
  const openedSecret = (entry: Entry<BrowserSessionRecord>): string | null => {
    try {
      return secrets.open(entry.key, entry.value)
    } catch (error) {
      if (error instanceof SealError) return null
      throw error
    }
  }
  /** Also one that has run out and may be renewed. */
  const lasting = (id: string): Entry<BrowserSessionRecord> | undefined => {
    const entry = sessions.get('', nameOf(id, nameSecret()))
    if (!entry || Date.parse(entry.value.endsAt) <= nowMs() || secretOf(entry) === null) return undefined
    return isCurrent(entry.value.principal) ? entry : undefined
  }
  const shown = (entry: Entry<BrowserSessionRecord>): BrowserSession => ({
    principal: entry.value.principal,
    expiresAt: new Date(entry.value.expiresAt),
    isRenewable: secretOf(entry) !== '',
  })
  const find = (id: string): BrowserSession | undefined => {
    const entry = lasting(id)
    return entry && Date.parse(entry.value.expiresAt) > nowMs() ? shown(entry) : undefined
  }

  /** `secret` is of before the login was looked at: one that is revoked meanwhile opens nothing. */
  const open = async (secret: Buffer, principal: Person, seconds: number, refreshToken = ''): Promise<string> => {
    await makeRoom(principal)
    const id = randomBytes(32).toString('base64url')
    const name = nameOf(id, secret)
    const lastSeconds = refreshToken === '' ? Math.min(seconds, longestSeconds) : longestSeconds
    const fields: Fields = {
      principal,
      createdAt: timestamp(clock.now()),
      expiresAt: after(Math.min(seconds, longestSeconds)),
      endsAt: after(lastSeconds),
    }
    await write(name, fields, refreshToken)
    return id
  }
  const write = (name: string, fields: Fields, secret: string) =>
    secrets.sealing((protect) =>
      sessions.create('', name, protect(sessions.key('', name), fields, secret) as BrowserSessionRecord),
    )
  const issue = async (
    secret: Buffer,
    principal: Person,
    seconds: number,
    sessionSeconds?: number,
  ): Promise<Ticket> => {
    await makeRoom(principal)
    const ticket = randomBytes(24).toString('base64url')
    const expiresAt = after(seconds)
    const fields = { principal, createdAt: timestamp(clock.now()), expiresAt, endsAt: expiresAt }
    const limit = sessionSeconds === undefined ? {} : { sessionEndsAt: after(sessionSeconds) }
    await write(ticketName(ticket, secret), { ...fields, ...limit }, '')
    return { ticket, expiresAt }
  }
  /** Whom a token names, and how many seconds it lasts. */
  const bearerOf = async (token: string): Promise<{ readonly principal: Person; readonly seconds: number }> => {
    const principal = await tokens.verify(token)
    if (!principal) throw unauthorized('the token is not valid here', 'Get a valid one with svc3 user get-token')
    if (principal.kind === 'agent' || principal.kind === 'server')
      throw unauthorized('this is the token of a node or a server', 'Use the token of a user or a service account')
    const { exp } = decodeJwt(token)
    const seconds = exp === undefined ? longestSeconds : exp - Math.floor(nowMs() / 1_000)
    if (seconds <= 0) throw unauthorized('the token has expired', 'Get another with svc3 user get-token')
    return { principal, seconds }
  }
  const ofCaller = (principal: Person): Entry<BrowserSessionRecord>[] =>
    sessions.list().filter(({ value }) => callerKey(value.principal) === callerKey(principal))
  const makeRoom = async (principal: Person): Promise<void> => {
    const own = ofCaller(principal).toSorted((a, b) => (a.value.createdAt < b.value.createdAt ? -1 : 1))
    for (const entry of own.slice(0, Math.max(0, own.length + 1 - maxPerCaller)))
      await sessions.delete(entry).catch(ignoreLost)
  }
  const rewrite = (entry: Entry<BrowserSessionRecord>, fields: Fields, secret: string) =>
    secrets.sealing((protect) => sessions.update(entry, protect(entry.key, fields, secret) as BrowserSessionRecord))

  const renew = async (entry: Entry<BrowserSessionRecord>, refresh: Refresh): Promise<void> => {
    const { sealed: _, renewingUntil: __, ...fields } = entry.value
    const secret = secretOf(entry) ?? ''
    const claimed = await rewrite(entry, { ...fields, renewingUntil: nowMs() + claimMs }, secret)
    let login: ProviderLogin | undefined
    try {
      login = await refresh(secret)
    } catch (error) {
      await rewrite(claimed, fields, secret).catch(ignoreLost)
      throw error
    }
    if (!login || callerKey(login.user) !== callerKey(fields.principal))
      return void (await sessions.delete(claimed).catch(ignoreLost))
    const next = { ...fields, principal: login.user, expiresAt: after(userTokenSeconds) }
    await rewrite(claimed, next, login.refreshToken ?? secret)
  }

  return {
    find,
    async openByToken(token) {
      const secret = nameSecret()
      const { principal, seconds } = await bearerOf(token)
      return open(secret, principal, seconds)
    },
    openByProvider: ({ user, refreshToken }) => open(nameSecret(), user, userTokenSeconds, refreshToken),
    async openByTicket(ticket) {
      const secret = nameSecret()
      const entry = sessions.get('', ticketName(ticket, secret))
      const isGood = entry && Date.parse(entry.value.expiresAt) > nowMs() && secretOf(entry) !== null
      if (!isGood || !isCurrent(entry.value.principal)) throw spent()
      // Whoever deletes it has it.
      await sessions.delete(entry).catch((error: unknown) => {
        throw isFault(error, 'Conflict') || isFault(error, 'NotFound') ? spent() : error
      })
      const { principal, sessionEndsAt } = entry.value
      if (sessionEndsAt === undefined) return open(secret, principal, ticketSessionSeconds)
      const leftSeconds = Math.floor((Date.parse(sessionEndsAt) - nowMs()) / 1_000)
      if (leftSeconds <= 0) throw spent()
      return open(secret, principal, leftSeconds)
    },
    issueTicket: (principal) => issue(nameSecret(), principal, ticketSeconds),
    async issueTicketFor(token) {
      const secret = nameSecret()
      const { principal, seconds } = await bearerOf(token)
      return issue(secret, principal, Math.min(shortTicketSeconds, seconds), seconds)
    },
    async renewed(id, refresh) {
      for (;;) {
        const entry = lasting(id)
        if (!entry) return undefined
        const { expiresAt, renewingUntil = 0 } = entry.value
        const isDue = Date.parse(expiresAt) - nowMs() < earlySeconds * 1_000
        if (!isDue || secretOf(entry) === '') return find(id)
        const under = renewals.get(entry.key)
        if (!under && renewingUntil > nowMs()) {
          // Another server is at it: what is good for the moment is good enough, what has run out waits for it.
          const still = find(id)
          if (still) return still
          await new Promise((resolve) => setTimeout(resolve, lookAgainMs))
          continue
        }
        const running = under ?? renew(entry, refresh).finally(() => renewals.delete(entry.key))
        renewals.set(entry.key, running)
        const isLost = await running.then(
          () => false,
          (error: unknown) => {
            if (isFault(error, 'Conflict') || isFault(error, 'NotFound')) return true
            throw error
          },
        )
        // Another server was quicker, or somebody logged out: reload and retry.
        if (!isLost) return find(id)
      }
    },
    async close(id, isEverywhere) {
      const entry = sessions.get('', nameOf(id, nameSecret()))
      if (!entry) return []
      const all = isEverywhere ? ofCaller(entry.value.principal) : [entry]
      const given = all.map((each) => secretOf(each) ?? '').filter((secret) => secret !== '')
      await Promise.all(all.map((each) => remove(each.key)))
      return given
    },
  }

  /** It is gone when this returns, also where a renewal writes it at the same time. */
  async function remove(key: string): Promise<void> {
    await sessions.change(key, () => null)
  }
}
