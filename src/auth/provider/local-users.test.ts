// Users of the built-in provider: the file, its edits by other processes, passwords.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { accountIdOf, LocalUsers, LocalUsersError } from './local-users.ts'

let folder: string
let users: LocalUsers
beforeEach(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-users-'))
  users = new LocalUsers(folder)
})
afterEach(() => fs.rmSync(folder, { recursive: true }))

const file = () => path.join(folder, 'users.json')
const password = 'correct horse'
const add = (email: string, admin = false) => users.add(email, { admin, password })

describe('local users', () => {
  it('local users are kept in a private file, without their passwords', async () => {
    await add('Ada@Example.com', true)
    await add('bob@example.com')
    assert.equal(fs.statSync(file()).mode & 0o777, 0o600)
    const text = fs.readFileSync(file(), 'utf8')
    assert.ok(!text.includes(password))
    const stored = JSON.parse(text).users
    assert.deepEqual(Object.keys(stored[0]), ['uid', 'email', 'admin', 'scrypt', 'createdAt'])
    assert.notEqual(stored[0].scrypt.hash, stored[1].scrypt.hash)
    assert.ok(stored[0].scrypt.N >= 2 ** 15)
    assert.deepEqual(fs.readdirSync(folder), ['users.json'])
  })

  it('local users are known by e-mail in any case and the right password', async () => {
    const ada = await add('ada@example.com')
    assert.equal((await users.verify(' ADA@example.com ', password))?.uid, ada.uid)
    for (const [email, given] of [
      ['ada@example.com', 'correct hors'],
      ['ada@example.com', ''],
      ['ada@example.com', `${password} `],
      ['eve@example.com', password],
      ['__proto__', password],
    ] as const)
      assert.equal(await users.verify(email, given), undefined)
  })

  it('local users take as long to refuse when they do not exist', async () => {
    await add('ada@example.com')
    // The work that it is, whoever else is at work on this machine: of its threads, too.
    const timed = async (email: string): Promise<number> => {
      const samples: number[] = []
      for (let index = 0; index < 3; index++) {
        const start = process.cpuUsage()
        await users.verify(email, 'wrong')
        const { user, system } = process.cpuUsage(start)
        samples.push((user + system) / 1_000)
      }
      return Math.min(...samples)
    }
    const [there, nowhere] = [await timed('ada@example.com'), await timed('eve@example.com')]
    assert.ok(nowhere > there / 3 && nowhere < there * 3, `${there} ms and ${nowhere} ms of the processor`)
  })

  it('local users that another process removes, adds or changes are noticed', async () => {
    const ada = await add('ada@example.com')
    const other = new LocalUsers(folder)
    assert.ok(other.isCurrent(accountIdOf(ada)))
    const id = accountIdOf(ada)
    assert.equal(other.byAccountId(id)?.email, 'ada@example.com')
    await users.reset('ada@example.com', 'another one')
    assert.equal(other.byAccountId(id), undefined)
    assert.ok(await other.verify('ada@example.com', 'another one'))
    await users.remove('ada@example.com')
    await eventually(() => assert.ok(!other.isCurrent(accountIdOf(ada))))
    // The same e-mail again is somebody else.
    const again = await add('ada@example.com')
    assert.notEqual(again.uid, ada.uid)
    assert.equal(other.list().length, 1)
    assert.ok(!other.isCurrent(accountIdOf(ada)))
  })

  it('local users are refused with a reason: twice, not there, no address, a short password', async () => {
    await add('ada@example.com')
    await assert.rejects(add('ADA@example.com'), /User ada@example.com already exists/)
    await assert.rejects(users.remove('eve@example.com'), /not found/)
    await assert.rejects(users.reset('eve@example.com', password), /not found/)
    await assert.rejects(add('not an address'), /Invalid email address/)
    await assert.rejects(users.add('bob@example.com', { admin: false, password: 'short' }), /too short/)
    assert.equal(users.list().length, 1)
  })

  it('local users are all there after many edits at once', async () => {
    const editors = Array.from({ length: 4 }, () => new LocalUsers(folder))
    await Promise.all(editors.map((each, index) => each.add(`u${index}@example.com`, { admin: false, password })))
    assert.equal(users.list().length, 4)
  })

  it('local users in a broken file are named; a running server keeps those it knew', async () => {
    const ada = await add('ada@example.com')
    for (const text of ['{', '{"users":[{}]}', '[]', 'null']) {
      fs.writeFileSync(file(), text)
      assert.throws(() => new LocalUsers(folder).list(), LocalUsersError)
    }
    const start = performance.now()
    while (performance.now() - start < 1_100) {
      assert.ok(users.isCurrent(accountIdOf(ada)))
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  })
})
