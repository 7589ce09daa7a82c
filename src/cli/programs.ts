// The programs that the command line starts but may not import: src/bin/svc3.ts fills them in.
import type { Trust } from '../client/tls.ts'

export const drivers = ['qemu', 'simulated'] as const
export type DriverName = (typeof drivers)[number]

export const architectures = ['arm64', 'amd64'] as const
export type Architecture = (typeof architectures)[number]

export const networks = ['sealed', 'user'] as const
export type NetworkKind = (typeof networks)[number]

/** How simulated VMs and nodes behave. */
export interface Simulation {
  readonly bootMs?: number
  readonly stopMs?: number
  readonly maxVms?: number
  /** Step → a chance from 0 to 1, or `once`. */
  readonly failAt?: Readonly<Record<string, number | 'once'>>
  /** Nodes are lost after about this time, and come back after the other. */
  readonly loseAfterMs?: number
  readonly backAfterMs?: number
}

export interface DevOptions {
  /** `port` 0 lets the system choose one. IPv6 hosts stand here without brackets. */
  readonly listen: { readonly host: string; readonly port: number }
  /** Absolute path of the folder that holds all state. */
  readonly dataDir: string
  readonly driver: DriverName
  /** How many nodes of each architecture. */
  readonly nodes: Readonly<Record<Architecture, number>>
  readonly simulation: Simulation
  /** What copies of images may take of the disk. */
  readonly imageQuotaBytes: number | undefined
}

export interface ServerOptions {
  readonly listen: DevOptions['listen']
  /** Absolute path of the folder that holds all state. */
  readonly dataDir: string
  /** Plain HTTP as well as HTTPS; only on loopback. */
  readonly plainHttp: boolean
  /** Where clients reach the service, when that is not where it listens. */
  readonly publicUrl: string | undefined
  /** Where the records are, when that is not the data folder. */
  readonly storeAddress: string | undefined
  /** Where other servers on the same records reach this one, when that is not where it listens. */
  readonly internalUrl: string | undefined
}

export interface RotateKeyOptions {
  /** Absolute path of the folder that holds all state. */
  readonly dataDir: string
}

/** Users of the built-in identity provider. */
export type UsersOptions = {
  /** Absolute path of the folder that holds all state. */
  readonly dataDir: string
} & (
  | { readonly action: 'list' }
  | { readonly action: 'remove'; readonly email: string }
  | { readonly action: 'reset'; readonly email: string; readonly password: string }
  | { readonly action: 'add'; readonly email: string; readonly password: string; readonly admin: boolean }
)

export interface AgentOptions {
  /** None: the one that the node joined by. */
  readonly apiUrls: readonly string[]
  /** Absolute path of the folder that holds the identity of the node and its VMs. */
  readonly dataDir: string
  readonly imageDir: string
  readonly name: string
  readonly driver: DriverName
  readonly architecture: Architecture | undefined
  readonly ip: string | undefined
  readonly cpu: number | undefined
  readonly memoryGib: number | undefined
  readonly maxVms: number | undefined
  /** What copies of images may take of the disk. */
  readonly imageQuotaBytes: number | undefined
  /** Where content is served to other nodes; undefined: nowhere. */
  readonly peerPort: number | undefined
  /** VMs that the first HELLO does not list go, whatever the data of the server are. */
  readonly removeUnknown: boolean
  /** Of guests; the safer one of this host when undefined. */
  readonly network: NetworkKind | undefined
  readonly simulation: Simulation
  /** Asked when the node has to join. */
  readonly joinToken: (() => Promise<string>) | undefined
  /** Of the string that the host joins by: where servers are when no address was given, and by which key they are known. */
  readonly joinUrls: readonly string[]
  readonly pin: string | undefined
  /** How the certificates of these servers are judged. `pin`: a key that is good though nobody vouches for it. */
  readonly trust: (apiUrls: readonly string[], pin?: string) => Trust | undefined
}

/** Each returns the exit code, handles its own signals, and writes its own messages. */
export interface Programs {
  dev(options: DevOptions): Promise<number>
  server(options: ServerOptions): Promise<number>
  rotateKey(options: RotateKeyOptions): Promise<number>
  users(options: UsersOptions): Promise<number>
  agent(options: AgentOptions): Promise<number>
}
