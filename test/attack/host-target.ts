// Starts the parts of an agent that doors of guests and peers attack.
import path from 'node:path'
import type { Attacker } from './attacker.ts'
import type { HostRequest } from './host.ts'
import { type OwnProgram, startOwnProgram } from './own-program.ts'

export interface HostTarget extends OwnProgram {
  /** Of the disk that it serves by NBD. */
  readonly nbdSocket: string
  /** Does a part of an agent, such as `flush`; see host.ts. */
  act(attacker: Attacker, part: string, request: HostRequest): Promise<Outcome>
}

export interface Outcome {
  readonly ended?: unknown
  readonly problem?: string
  /** The class of the error. */
  readonly kind?: string
}

export async function startHost(): Promise<HostTarget> {
  const host = await startOwnProgram('host.ts')
  return {
    ...host,
    nbdSocket: path.join(host.folder, 'nbd', 'disk'),
    act: async (attacker, part, request) =>
      JSON.parse((await attacker.call('POST', `${host.url}/${part}`, { body: request })).text || '{}'),
  }
}
