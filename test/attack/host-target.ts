// Starts the parts of an agent that doors of guests and peers attack.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { endService } from '../support/processes/leftovers.ts'
import type { Attacker } from './attacker.ts'
import type { HostRequest } from './host.ts'
import type { Program } from './watch.ts'

export interface HostTarget extends Program, AsyncDisposable {
  /** Of the disk that it serves by NBD. */
  readonly nbdSocket: string
  /** Does a part of an agent, such as `flush`; see host.ts. */
  act(attacker: Attacker, part: string, request: HostRequest): Promise<Acted>
}

export interface Acted {
  readonly ended?: unknown
  readonly problem?: string
  /** The class of the error. */
  readonly kind?: string
}

export async function startHost(): Promise<HostTarget> {
  // Short, because the path of a socket is.
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-host-'))
  const program = path.join(import.meta.dirname, 'host.ts')
  const child = spawn(process.execPath, [program, folder], { stdio: ['ignore', 'pipe', 'inherit'] })
  endService(child)
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  const url = line.toString().trim()
  let logged = ''
  child.stdout.on('data', (chunk: Buffer) => {
    logged += chunk.toString()
  })
  return {
    pid: child.pid ?? 0,
    pingUrl: `${url}/`,
    folder,
    output: () => logged,
    nbdSocket: path.join(folder, 'nbd', 'disk'),
    act: async (attacker, part, request) =>
      JSON.parse((await attacker.call('POST', `${url}/${part}`, { body: request })).text || '{}'),
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL')
      await fs.rm(folder, { recursive: true, force: true })
    },
  }
}
