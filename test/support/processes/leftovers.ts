// What a test leaves running ends with the process of its file, however that ends: services, and guests, which outlive services.
// A test that failed is one failure then, and not the next ones, too, whose ports it holds.
import type { ChildProcess } from 'node:child_process'
import { qemusIn } from './qemus.ts'

const folders = new Set<string>()
const services = new Set<ChildProcess>()
let isArmed = false

/** Guests of nodes that keep their data in there. */
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
  // Without a listener there would be no `exit`: so the runner ends a file that takes too long, and people a benchmark.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
}

/** Services first: they would start guests again. */
function endAll(): void {
  for (const child of services) child.kill('SIGKILL')
  for (const pid of [...folders].flatMap(qemusIn)) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It has ended meanwhile.
    }
  }
}
