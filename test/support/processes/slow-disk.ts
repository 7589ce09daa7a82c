// Makes every fsync of a process wait, by strace. It needs only the right to trace a process of the same user.
import { spawn } from 'node:child_process'
import { once } from 'node:events'

interface SlowDisk {
  /** Ends the delay. */
  end(): Promise<void>
}

export async function slowDisk(pid: number, delayMs: number): Promise<SlowDisk> {
  const calls = 'fsync,fdatasync'
  const inject = `inject=${calls}:delay_enter=${delayMs * 1_000}`
  const args = ['-f', '-qq', '-o', '/dev/null', '-e', `trace=${calls}`, '-e', inject, '-p', String(pid)]
  const tracer = spawn('strace', args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let problem = ''
  tracer.stderr.on('data', (text: Buffer) => {
    problem += text.toString()
  })
  const ended = once(tracer, 'exit')
  await once(tracer, 'spawn')
  return {
    end: async () => {
      tracer.kill('SIGTERM')
      const [code] = await ended
      // The process may have ended before.
      if (code === 1 && !/No such process/.test(problem)) throw new Error(`strace: ${problem}`)
    },
  }
}
