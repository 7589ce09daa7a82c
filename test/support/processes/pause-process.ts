// Pauses a process and returns when all of it stands still: SIGSTOP is handled by one thread, and on a busy machine the
// others keep running until that one is scheduled.
import fs from 'node:fs'

const timeoutMs = 10_000

export function pauseProcess(pid: number): void {
  process.kill(pid, 'SIGSTOP')
  const untilMs = performance.now() + timeoutMs
  while (!threadStates(pid).every((state) => state === 'T')) {
    if (performance.now() > untilMs) throw new Error(`process ${pid} does not stand still`)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)
  }
}

function threadStates(pid: number): string[] {
  const folder = `/proc/${pid}/task`
  return fs.readdirSync(folder).map((thread) => {
    const stat = fs.readFileSync(`${folder}/${thread}/stat`, 'utf8')
    // After the thread's name, which may contain anything.
    return stat.charAt(stat.lastIndexOf(')') + 2)
  })
}
