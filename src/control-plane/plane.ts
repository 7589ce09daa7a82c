// What the control plane is to those who start it: what it is told, and what it offers.
import type { BrowserSessions } from '../auth/login/browser-sessions.ts'
import type { NodeKeys } from '../auth/node-keys.ts'
import type { Tokens } from '../auth/tokens.ts'
import type { OperatorRequest, RequestFile } from '../operator/operator-request.ts'
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import type { Certificates } from '../server/tls/certificates.ts'
import type { Collections } from '../store/records/collections.ts'
import type { IdentityPart } from './identity.ts'

export interface ControlPlaneOptions {
  readonly dataFolder: string
  /** Where the records are, when that is not the data folder: an address for `openStore`. */
  readonly storeAddress?: string | undefined
  /** Where the images are, when that is a registry: `oci://…`. Otherwise what the settings say, or the data folder. */
  readonly images?: string | undefined
  readonly host: string
  readonly port: number
  readonly environment: NodeJS.ProcessEnv
  /** Serve plain HTTP beside HTTPS; the API is then known by its plain address. */
  readonly plainHttp: boolean
  /** Where clients reach the API, when that is not where it listens. */
  readonly publicUrl?: string | undefined
  /** Where other servers on the same store reach this one, when that is not where it listens. */
  readonly internalUrl?: string | undefined
  /** Paths of 2.4.x are answered unless the settings say otherwise. */
  readonly legacy?: boolean | undefined
  readonly clock?: Clock
  /** How long load balancers take to notice, unless the settings say it. */
  readonly noticeSeconds?: number | undefined
}

export interface ControlPlane {
  readonly apiUrl: string
  /** As `apiUrl`, for programs on this machine. */
  readonly localUrl: string
  /** Where browsers find the console; undefined when it is switched off. */
  readonly consoleUrl: string | undefined
  readonly certificates: Certificates
  readonly log: Log
  readonly tokens: Tokens
  readonly browserSessions: BrowserSessions
  readonly nodeKeys: NodeKeys
  readonly collections: Collections
  readonly localUsers: IdentityPart['localUsers']
  /** What a command of the operator asks for. */
  handleRequest(request: OperatorRequest): Promise<NonNullable<RequestFile['answer']>>
  /** Resolves when the store can never go on in this process: it has to be started again. */
  readonly failed: Promise<Error>
  /** Whether the controllers run here. */
  isLeading(): boolean
  /** Says that it is not ready, ends streams, serves on until that was noticed, lets requests finish, closes the store. */
  stop(hurry?: AbortSignal): Promise<void>
}
