// Values in a log: what was set is there for the next one who opens it, whatever cut off the last line.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { KeyedLog } from './keyed-log.ts'

describe('keyed log', () => {
  let folder: string
  let file: string
  beforeEach(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-log-'))
    file = path.join(folder, 'x.jsonl')
  })
  afterEach(() => fs.rmSync(folder, { recursive: true, force: true }))
  const open = () => new KeyedLog<unknown>(folder, 'x')
  const read = () => Object.fromEntries(open())

  it('a keyed log is the same map again after any changes, with or without a close in between', () => {
    const change = fc.oneof(
      fc.record({ key: fc.constantFrom('a', 'b', 'ü\n'), value: fc.jsonValue() }),
      fc.record({ key: fc.constantFrom('a', 'b', 'ü\n') }),
      fc.constant('open' as const),
    )
    fc.assert(
      fc.property(fc.array(change), (changes) => {
        fs.rmSync(file, { force: true })
        const expected = new Map<string, unknown>()
        let log = open()
        for (const one of changes) {
          if (one === 'open') {
            log.close()
            log = open()
          } else if ('value' in one) for (const map of [log, expected]) map.set(one.key, one.value)
          else assert.equal(log.delete(one.key), expected.delete(one.key))
          assert.deepEqual(read(), JSON.parse(JSON.stringify(Object.fromEntries(expected))))
        }
        log.close()
      }),
      { numRuns: 50 },
    )
  })

  it('a keyed log whose last line was cut off anywhere has all before it, and takes the next', () => {
    const log = open()
    log.set('a', 1).set('a', { text: 'ü', more: [2] })
    log.close()
    const bytes = fs.readFileSync(file)
    const begin = bytes.indexOf(10) + 1
    for (let end = begin; end < bytes.length - 1; end++) {
      fs.writeFileSync(file, bytes.subarray(0, end))
      assert.deepEqual(read(), { a: 1 })
      const next = open()
      next.set('b', 3).set('c', 4)
      next.close()
      assert.deepEqual(read(), { a: 1, b: 3, c: 4 })
    }
  })

  it('a keyed log is compacted when most lines are outdated, without losing a value', () => {
    const log = open()
    log.set('first', true)
    for (let count = 0; count < 10_000; count++) log.set(`key-${count % 10}`, count)
    const lines = fs.readFileSync(file, 'utf8').split('\n').length
    assert.ok(lines < 1_200, `${lines} lines`)
    log.close()
    assert.deepEqual(new Map(open()), new Map(log))
    assert.deepEqual(fs.readdirSync(folder), ['x.jsonl'])
    assert.equal(fs.statSync(file).mode & 0o777, 0o600)
  })

  it('a keyed log that cannot be compacted accepts changes, and is compacted later', () => {
    const log = open()
    // Not a folder.
    fs.mkdirSync(`${file}.tmp`)
    for (let count = 0; count < 2_000; count++) log.set('key', count)
    assert.ok(log.delete('key'))
    assert.ok(fs.readFileSync(file, 'utf8').split('\n').length > 2_000)
    fs.rmdirSync(`${file}.tmp`)
    for (let count = 0; count < 2_000; count++) log.set('key', count)
    assert.ok(fs.readFileSync(file, 'utf8').split('\n').length < 2_000)
    log.close()
    assert.deepEqual(read(), { key: 1_999 })
  })

  it('a keyed log on a full disk refuses a change, keeps its values, and works again with free space', async () => {
    const code = `
      import fs from 'node:fs'
      const { KeyedLog } = await import(${JSON.stringify(path.join(import.meta.dirname, 'keyed-log.ts'))})
      const [folder] = process.argv.slice(1)
      const log = new KeyedLog(folder, 'x')
      log.set('ballast', 1)
      fs.writeFileSync(folder + '/ballast', Buffer.alloc(150_000))
      let number = 0
      let code
      while (code === undefined)
        try { log.set('key-' + number, 'x'.repeat(10_000)); number++ } catch (error) { code = error.code }
      const isRefused = !log.has('key-' + number)
      const isTorn = !fs.readFileSync(folder + '/x.jsonl', 'utf8').endsWith('\\n')
      fs.rmSync(folder + '/ballast')
      log.set('last', 'there')
      const again = new KeyedLog(folder, 'x')
      console.log(JSON.stringify([code, isRefused, isTorn, number > 5, again.size - number, again.get('last')]))`
    const own = process.getuid?.() === 0 ? ['--mount'] : ['--user', '--map-root-user', '--mount']
    const mounted = ['sh', '-c', 'mount -t tmpfs -o size=256k tmpfs "$0" && exec "$@"', folder]
    const node = [process.execPath, '--input-type=module', '--eval', code, folder]
    const { stdout } = await promisify(execFile)('unshare', [...own, ...mounted, ...node])
    assert.deepEqual(JSON.parse(stdout), ['ENOSPC', true, true, true, 2, 'there'])
  })
})
