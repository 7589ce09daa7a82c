// The users of the built-in provider: their records, and changes by other processes.
import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { usersInMemory } from '../../../test/support/rigs/users.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { accountIdOf, type UserDirectory } from './users.ts'

let rig: Awaited<ReturnType<typeof usersInMemory>>
let users: UserDirectory
beforeEach(async () => {
  rig = await usersInMemory()
  users = rig.users
})

const password = 'correct horse'
const add = (email: string, admin = false) => users.add(email, { admin, password })

describe('local users', () => {
  it('local users are records whose password hash is sealed', async () => {
    await add('Ada@Example.com', true)
    await add('bob@example.com')
    const records = rig.collection.list().map(({ value }) => value)
    assert.deepEqual(Object.keys(records[0] ?? {}), ['uid', 'email', 'admin', 'createdAt', 'sealed'])
    const text = JSON.stringify(records)
    for (const secret of [password, ...users.list().map(({ scrypt }) => scrypt.hash)]) assert.ok(!text.includes(secret))
    const [ada, bob] = users.list().map(({ scrypt }) => scrypt)
    assert.notEqual(ada?.hash, bob?.hash)
    assert.ok((ada?.N ?? 0) >= 2 ** 15)
  })

  it('local users log in by email in any case and the right password', async () => {
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

  it('an unknown local user is refused as slowly as a wrong password', async () => {
    await add('ada@example.com')
    // Measured in CPU time of all threads, so that other processes do not matter.
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

  it('local users that another server removes, adds or changes are noticed', async () => {
    const ada = await add('ada@example.com')
    const other = rig.open()
    assert.ok(other.isCurrent(accountIdOf(ada)))
    const id = accountIdOf(ada)
    assert.equal(other.byAccountId(id)?.email, 'ada@example.com')
    await users.reset('ada@example.com', 'another one')
    assert.equal(other.byAccountId(id), undefined)
    assert.ok(await other.verify('ada@example.com', 'another one'))
    await users.remove('ada@example.com')
    await eventually(() => assert.ok(!other.isCurrent(accountIdOf(ada))))
    // A user with the same email that is added again is another user.
    const again = await add('ada@example.com')
    assert.notEqual(again.uid, ada.uid)
    assert.equal(other.list().length, 1)
    assert.ok(!other.isCurrent(accountIdOf(ada)))
  })

  it('local users are refused with a reason: duplicate, unknown, invalid email, short password', async () => {
    await add('ada@example.com')
    await assert.rejects(add('ADA@example.com'), /User ada@example.com already exists/)
    await assert.rejects(users.remove('eve@example.com'), /not found/)
    await assert.rejects(users.reset('eve@example.com', password), /not found/)
    await assert.rejects(add('not an address'), /Invalid email address/)
    await assert.rejects(users.add('bob@example.com', { admin: false, password: 'short' }), /too short/)
    assert.equal(users.list().length, 1)
  })

  it('concurrent edits of local users are all kept', async () => {
    const editors = Array.from({ length: 4 }, () => rig.open())
    await Promise.all(editors.map((each, index) => each.add(`u${index}@example.com`, { admin: false, password })))
    assert.equal(users.list().length, 4)
  })
})
