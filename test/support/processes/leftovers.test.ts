// A test file leaves none of its services and guests running, however it ends.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import path from 'node:path'
import { describe, it } from 'node:test'
import { eventually } from '../tools/eventually.ts'

/** A stand-in for a guest has QEMU's name, its folder, and a separate session, as if a service had started it. */
const script = `
import { spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { makeFolder } from ${JSON.stringify(path.join(import.meta.dirname, 'dev-server.ts'))}
import { endService } from ${JSON.stringify(path.join(import.meta.dirname, 'leftovers.ts'))}
const folder = await makeFolder()
const cwd = folder + '/nodes/a/vms/b'
mkdirSync(cwd, { recursive: true })
const guest = spawn('sleep', ['600'], { argv0: 'qemu-system-none', cwd, detached: true, stdio: 'ignore' })
const service = spawn('sleep', ['600'], { stdio: 'ignore' })
endService(service)
console.log(JSON.stringify({ folder, pids: [guest.pid, service.pid] }))
process.stdin.once('data', () => { throw new Error('failed on purpose') })
`

const ends: Readonly<Record<string, (child: ChildProcess) => void>> = {
  'fails on purpose': (child) => child.stdin?.write('now'),
  'is ended because it takes too long': (child) => child.kill('SIGTERM'),
}

describe('leftovers of tests', () => {
  for (const [how, end] of Object.entries(ends))
    it(`leftovers of tests end with a file that ${how}`, async () => {
      const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
        stdio: ['pipe', 'pipe', 'ignore'],
      })
      const [line] = await once(child.stdout, 'data')
      const { folder, pids } = JSON.parse(String(line)) as { folder: string; pids: number[] }
      try {
        for (const pid of pids) assert.equal(await stateOf(pid), 'lives')
        end(child)
        const [code] = await once(child, 'exit')
        assert.notEqual(code, 0)
        await eventually(async () => assert.deepEqual(await Promise.all(pids.map(stateOf)), ['ended', 'ended']))
      } finally {
        child.kill('SIGKILL')
        for (const pid of pids) if ((await stateOf(pid)) === 'lives') process.kill(pid, 'SIGKILL')
        await fs.rm(folder, { recursive: true, force: true })
      }
    })
})

/** A zombie has ended. */
async function stateOf(pid: number): Promise<'lives' | 'ended'> {
  const stat = await fs.readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  return stat === '' || / [ZX] /.test(stat.slice(stat.lastIndexOf(')'))) ? 'ended' : 'lives'
}
