// What svc3 is as a service of its host: one definition, from which systemd's unit and launchd's property list are made.
// Nothing secret is in it: both are readable by everybody.

export type ServiceKind = 'agent' | 'server'

export interface ServiceDefinition {
  readonly kind: ServiceKind
  /** The program and its words, all paths absolute. */
  readonly command: readonly string[]
  readonly user: string
  /** Groups that it needs beside its own. */
  readonly groups: readonly string[]
  readonly dataDir: string
  /** Folders besides that it writes to. */
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

/** The copy of the program that a service runs, so that an update of the package does not change it under its feet. */
export const programDir = (kind: ServiceKind): string => `/usr/local/lib/svc3/${kind}`
