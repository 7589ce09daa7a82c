// What a guest says about itself and its disk, and that a password does not come into what people read.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { growGuest, parseSizes, parseSystem, problemWith, withoutPassword } from './grow.ts'
import { growScript, systemScript } from './grow-scripts.ts'

const shell = (script: string, ...args: string[]) => promisify(execFile)('sh', [...args, '-c', script])

describe('growing a file system in a guest', () => {
  it('knows systems that it can grow, and says which it does not know', async () => {
    assert.deepEqual(parseSystem('Welcome!\nsvc3-system Darwin 501\n'), { name: 'Darwin', isRoot: false })
    const { stdout } = await shell(systemScript)
    assert.equal(parseSystem(stdout).name, process.platform === 'darwin' ? 'Darwin' : 'Linux')
    assert.throws(() => parseSystem('svc3-system FreeBSD 0'), /FreeBSD/)
    assert.throws(() => parseSystem(''), /does not say/)
  })

  it('is content when the file system grew, or fills its disk already', () => {
    const sizes = parseSizes('resize2fs …\nsvc3-sizes 1000 1900 2000\n')
    assert.deepEqual(sizes, { beforeKb: 1000, afterKb: 1900, diskKb: 2000 })
    assert.equal(problemWith(sizes), undefined)
    assert.equal(problemWith({ beforeKb: 1900, afterKb: 1900, diskKb: 2000 }), undefined)
    assert.match(problemWith({ beforeKb: 1000, afterKb: 1000, diskKb: 2000 }) ?? '', /1000 KiB as before/)
    assert.throws(() => parseSizes('no such command'), /no such command/)
  })

  it('has scripts that a shell can read and that can stand in single quotes', async () => {
    for (const script of Object.values(growScript)) {
      assert.ok(!script.includes("'"))
      await shell(script, '-n')
    }
  })

  it('does not repeat a password', () => {
    assert.equal(withoutPassword('sudo: s3cret: not found', 's3cret'), 'sudo: …: not found')
    assert.equal(withoutPassword('text', ''), 'text')
  })

  it('ends when it is told to, while it waits for a guest', async () => {
    const growth = { host: '127.0.0.1', port: 1, user: 'admin', password: 'x', diskGb: 2 }
    await assert.rejects(growGuest(growth, AbortSignal.timeout(50)), { name: 'TimeoutError' })
  })
})
