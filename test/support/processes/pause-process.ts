// Stops a process where it is, and returns when it stands still: SIGSTOP is taken by one thread, and on a machine with much to
// do the others go on for as long as that one waits for a processor.
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
    // After the name of the thread, which may hold anything.
    return stat.charAt(stat.lastIndexOf(')') + 2)
  })
}
