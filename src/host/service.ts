// svc3 as a service of its host: one definition, from which systemd's unit and launchd's property list are made. It has no
// secrets, because all users can read both.

export type ServiceKind = 'agent' | 'server'

export interface ServiceDefinition {
  readonly kind: ServiceKind
  /** The program and its arguments. All paths are absolute. */
  readonly command: readonly string[]
  readonly user: string
  /** Additional groups of the user. */
  readonly groups: readonly string[]
  readonly dataDir: string
  /** Other folders that the service writes to. */
  readonly writes: readonly string[]
}

export interface ServiceFile {
  readonly path: string
  readonly text: string
  readonly mode: number
}

export const serviceNames: Readonly<Record<ServiceKind, string>> = { agent: 'svc3-agent', server: 'svc3-server' }

export const summaries: Readonly<Record<ServiceKind, string>> = {
  agent: 'svc3 agent: runs the VMs of this node',
  server: 'svc3 server: control plane of a VM cluster',
}

export const defaultUsers: Readonly<Record<ServiceKind, string>> = { agent: 'svc3-agent', server: 'svc3' }

/** The service runs a copy of the program, so that an update of the package does not change a running service. */
export const programDir = (kind: ServiceKind): string => `/usr/local/lib/svc3/${kind}`
