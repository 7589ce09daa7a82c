// Keys with which nodes fetch content from each other: a serving node has a secret per epoch, a fetching node gets a
// key derived from it and its own uid. Nothing is stored, and a removed node gets no new key.
import { createHmac } from 'node:crypto'
import type { Clock } from '../../platform/clock.ts'

interface PeerTicket {
  /** The epoch and the uid of the fetching node. */
  readonly identity: string
  readonly key: string
}

export interface PeerTickets {
  /** The secrets of a serving node for the last, this and the next epoch, in base64. */
  secretsFor(nodeUid: string): Record<string, string>
  issue(servingUid: string, fetchingUid: string): PeerTicket
}

const epochMs = 10 * 60_000

export function createPeerTickets(secret: () => Buffer, clock: Clock): PeerTickets {
  const epoch = (): number => Math.floor(clock.now().getTime() / epochMs)
  const secretOf = (uid: string, at: number): Buffer => createHmac('sha256', secret()).update(`${at}\n${uid}`).digest()
  return {
    secretsFor(uid) {
      const now = epoch()
      return Object.fromEntries([now - 1, now, now + 1].map((at) => [at, secretOf(uid, at).toString('base64')]))
    },
    issue(servingUid, fetchingUid) {
      const now = epoch()
      const identity = `${now}.${fetchingUid}`
      const key = createHmac('sha256', secretOf(servingUid, now)).update(identity).digest('base64')
      return { identity, key }
    },
  }
}
