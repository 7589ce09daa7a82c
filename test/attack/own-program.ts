// A program of this folder as a process: node PROGRAM FOLDER, which prints its address.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { endService } from '../support/processes/leftovers.ts'
import type { Program } from './watch.ts'

export interface OwnProgram extends Program, AsyncDisposable {
  readonly url: string
}

export async function startOwnProgram(file: string): Promise<OwnProgram> {
  // Short, because the path of a socket is.
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-attack-'))
  const program = path.join(import.meta.dirname, file)
  const child = spawn(process.execPath, [program, folder], { stdio: ['ignore', 'pipe', 'inherit'] })
  endService(child)
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  const url = line.toString().trim()
  let logged = ''
  child.stdout.on('data', (chunk: Buffer) => {
    logged += chunk.toString()
  })
  return {
    url,
    pid: child.pid ?? 0,
    pingUrl: `${url}/`,
    folder,
    output: () => logged,
    [Symbol.asyncDispose]: async () => {
      const ended = once(child, 'exit')
      if (child.kill('SIGKILL')) await ended
      await fs.rm(folder, { recursive: true, force: true })
    },
  }
}
