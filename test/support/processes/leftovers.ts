// Ends services and guests together with the process of their test file, however that ends. Otherwise a failed test would
// hold the ports of the next ones.
import type { ChildProcess } from 'node:child_process'
import { qemusIn } from './qemus.ts'

const folders = new Set<string>()
const services = new Set<ChildProcess>()
let isArmed = false

/** Ends guests of nodes with data in this folder. */
export function endGuestsOf(folder: string): void {
  folders.add(folder)
  arm()
}

export function endService(child: ChildProcess): void {
  services.add(child)
  child.once('exit', () => services.delete(child))
  arm()
}

function arm(): void {
  if (isArmed) return
  isArmed = true
  process.once('exit', endAll)
  // Without a listener there would be no `exit` event: the runner ends a slow file, and people a benchmark.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
}

/** Services first, because they would start guests again. */
function endAll(): void {
  for (const child of services) child.kill('SIGKILL')
  for (const pid of [...folders].flatMap(qemusIn)) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has ended already.
    }
  }
}
