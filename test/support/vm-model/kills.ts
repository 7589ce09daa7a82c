// Ways to kill a process: now, at a fail point, or at one of its next modifying system calls.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { failPoints } from '../../../src/agent/vms/steps.ts'
import type { Random } from '../history/random.ts'

const root = path.resolve(import.meta.dirname, '../../..')
const changing = 'openat,write,pwrite64,rename,unlink,rmdir,mkdir,fsync,fdatasync,ftruncate,linkat'
const timeoutMs = 1_500
const maxCalls = 60

/** All fail points in the source. */
const named = fs
  .globSync('src/**/*.ts', { cwd: root })
  .filter((file) => !file.includes('.test.'))
  .flatMap((file) => [...fs.readFileSync(path.join(root, file), 'utf8').matchAll(/\bfailpoint\('([a-z.-]+)'\)/g)])
  .map(([, name = '']) => name)
const points = [...new Set([...failPoints, ...named])]

export interface Mortal {
  readonly process: ChildProcess
  /** The file that names the fail point at which it dies. */
  readonly fatal: string
  /** The fail points that it can reach. */
  readonly points: RegExp
}

type Way = (mortal: Mortal, random: Random) => Promise<string>

const ways: readonly Way[] = [
  async () => 'now',
  async ({ process: child, fatal, points: met }, random) => {
    const point = random.pick(points.filter((each) => met.test(each)))
    fs.writeFileSync(fatal, point)
    await Promise.race([ended(child), sleep(timeoutMs)])
    return `at ${point}`
  },
  async ({ process: child }, random) => {
    const when = random.integer(1, maxCalls)
    const inject = `inject=${changing}:signal=SIGKILL:when=${when}`
    // Each thread separately: -f would follow children and kill a qemu-img instead.
    const threads = fs.readdirSync(`/proc/${child.pid}/task`).flatMap((thread) => ['-p', thread])
    const words = ['-qq', '-o', '/dev/null', '-e', `trace=${changing}`, '-e', inject, ...threads]
    const tracer = spawn('strace', words, { stdio: 'ignore' })
    await Promise.race([ended(child), sleep(timeoutMs)])
    tracer.kill('SIGKILL')
    await ended(tracer)
    return `at a system call, the ${when}th of its thread`
  },
]

/** Resolves when it is dead. Returns how. */
export async function killSomehow(mortal: Mortal, random: Random): Promise<string> {
  const { process: child, fatal } = mortal
  const how = await random.pick(ways)(mortal, random)
  const isLate = child.exitCode === null && child.signalCode === null
  child.kill('SIGKILL')
  await ended(child)
  fs.rmSync(fatal, { force: true })
  return isLate && how !== 'now' ? `now, because it did not come to die ${how}` : how
}

const ended = async (child: ChildProcess): Promise<void> => {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}
