// The programs that the command line starts but may not import: src/bin/svc3.ts fills them in.
import type { Architecture } from '../api/architecture.ts'
import type { Trust } from '../client/tls.ts'

export const drivers = ['qemu', 'apple', 'simulated'] as const
export type DriverName = (typeof drivers)[number]
/** Those that need nothing of a host but its programs. */
export const devDrivers = ['qemu', 'simulated'] as const satisfies readonly DriverName[]
export type DevDriverName = (typeof devDrivers)[number]

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
  readonly driver: DevDriverName
  /** How many nodes of each architecture. */
  readonly nodes: Readonly<Record<Architecture, number>>
  readonly simulation: Simulation
  /** What copies of images may take of the disk. */
  readonly imageQuotaBytes: number | undefined
  /** The registry that the images are in; without it, where the settings say, or the data folder. */
  readonly images: string | undefined
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
  /** The registry that the images are in; without it, where the settings say, or the data folder. */
  readonly images: string | undefined
}

export interface RotateKeyOptions {
  /** Absolute path of the folder that holds all state. */
  readonly dataDir: string
}

/** Where the data of a service are, for commands of its operator. */
export interface DataPlace {
  /** Absolute path of the folder that holds all state. */
  readonly dataDir: string
  /** Where the records are; without it, where the folder says. */
  readonly storeAddress?: string
}

export interface RotateKeysOptions extends DataPlace {
  /** The older keys end at once. */
  readonly isRevoking: boolean
}

export interface BackupCommandOptions extends DataPlace {
  /** Absolute path. */
  readonly file: string
  readonly withImages: boolean
}

export interface RestoreCommandOptions extends DataPlace {
  /** Absolute path. */
  readonly file: string
  /** Where the images go: a registry, or `folder`; without it, where they were. */
  readonly images: string | undefined
}

export interface MigrateStoreOptions {
  /** Absolute path of the folder whose records are in SQLite. */
  readonly dataDir: string
  readonly to: string
}

export interface ForgetServerOptions extends DataPlace {
  /** As others name it: HOST:PORT. */
  readonly name: string
}

/** Users of the built-in identity provider. */
export type UsersOptions = DataPlace &
  (
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
  /** The node gets another key, and the old one is refused. */
  readonly renewKey: boolean
  /** VMs that the first HELLO does not list go, whatever the data of the server are. */
  readonly removeUnknown: boolean
  /** The node's own configuration; undefined: the one in the data folder, if there is one. */
  readonly configFile: string | undefined
  /** Of guests; the safer one of this host when undefined. */
  readonly network: NetworkKind | undefined
  readonly simulation: Simulation
  /** Asked when the node has to join. */
  readonly joinToken: (() => Promise<string>) | undefined
  /** Called when the node has joined: a token that was left for it is not needed any more. */
  readonly joined?: (() => Promise<void>) | undefined
  /** Of the string that the host joins by: where servers are when no address was given, and by which key they are known. */
  readonly joinUrls: readonly string[]
  readonly pin: string | undefined
  /** How the certificates of these servers are judged. `pin`: a key that is good though nobody vouches for it. */
  readonly trust: (apiUrls: readonly string[], pin?: string) => Trust | undefined
}

export const serviceKinds = ['agent', 'server'] as const
export type ServiceKind = (typeof serviceKinds)[number]

/** Where a service of the host is worked on. */
export interface ServicePlace {
  readonly kind: ServiceKind
  /** Files go below this folder, and nothing is started; undefined: this host itself. */
  readonly root: string | undefined
}

export type ServiceRequest = ServicePlace & { readonly dryRun: boolean } & (
    | { readonly action: 'upgrade' | 'uninstall' }
    | {
        readonly action: 'install'
        /** Undefined: one for services alone, or on macOS who called sudo. */
        readonly user: string | undefined
        readonly dataDir: string
        readonly writes: readonly string[]
        /** What the service is started with. Nothing secret: everybody can read it. */
        readonly words: readonly string[]
        /** Written to a file of the service's user. */
        readonly joinToken: string | undefined
      }
  )

export interface ServiceStatus {
  readonly name: string
  readonly state: 'running' | 'starting' | 'stopped' | 'failed' | 'not installed'
  readonly version?: string
  readonly pid?: number
  readonly user?: string
  readonly dataDir?: string
  /** As the service itself says it. */
  readonly text?: string
  /** The command that shows what it wrote. */
  readonly log: string
}

export interface DoctorOptions {
  readonly apiUrls: readonly string[]
  readonly dataDir: string
  readonly driver: DriverName
  readonly network: NetworkKind | undefined
  readonly configFile: string | undefined
  readonly trust: AgentOptions['trust']
  readonly signal: AbortSignal
}

export interface DoctorCheck {
  readonly check: string
  readonly result: 'ok' | 'warning' | 'problem'
  /** What was found. */
  readonly found: string
  /** What to do, where there is something to do. */
  readonly advice?: string
}

/** Each returns the exit code, handles its own signals, and writes its own messages. */
export interface Programs {
  dev(options: DevOptions): Promise<number>
  server(options: ServerOptions): Promise<number>
  rotateKey(options: RotateKeyOptions): Promise<number>
  rotateKeys(options: RotateKeysOptions): Promise<number>
  backup(options: BackupCommandOptions): Promise<number>
  restore(options: RestoreCommandOptions): Promise<number>
  migrateStore(options: MigrateStoreOptions): Promise<number>
  forgetServer(options: ForgetServerOptions): Promise<number>
  users(options: UsersOptions): Promise<number>
  agent(options: AgentOptions): Promise<number>
  service(request: ServiceRequest): Promise<number>
  /** This one answers, and leaves the rest to the command. */
  serviceStatus(place: ServicePlace): Promise<ServiceStatus>
  /** So does this. Never throws for what it finds. */
  doctor(options: DoctorOptions): Promise<readonly DoctorCheck[]>
}
