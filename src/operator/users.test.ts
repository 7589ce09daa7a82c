// svc3 server users, on the data folder of a service that has been started once.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { decodeJwt } from 'jose'
import { type FakeHostOptions, run } from '../../test/support/rigs/cli-host.ts'
import { createAccounts } from '../auth/accounts.ts'
import { loadKeyring, takeKeySource } from '../auth/keyring.ts'
import { UserDirectory } from '../auth/provider/users.ts'
import { Secrets } from '../auth/secrets.ts'
import { loadSigningKeys } from '../auth/signing-keys.ts'
import { createTokens } from '../auth/tokens.ts'
import { systemClock } from '../platform/clock.ts'
import { openStore } from '../store/open.ts'
import { openCollections } from '../store/records/collections.ts'

let dataDir: string
before(async () => {
  dataDir = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-users-'))
  await using store = new AsyncDisposableStack()
  const opened = await openStore(`sqlite:${dataDir}`)
  store.defer(() => opened.close())
  const collections = store.use(await openCollections(opened))
  const secrets = new Secrets(await loadKeyring(takeKeySource(dataDir, {}), true))
  await loadSigningKeys(collections.signingKeys, secrets, systemClock)
})
after(() => fs.rm(dataDir, { recursive: true, force: true }))

const users = (line: string, more: FakeHostOptions = {}) =>
  run(['server', 'users', ...line.split(' '), '--data', dataDir], { input: 'a long password\n', ...more })

describe('svc3 server users', () => {
  it('svc3 server users adds, lists, resets and removes users of the data folder', async () => {
    const added = await users('add ada@example.com --admin --password-stdin')
    assert.deepEqual([added.exitCode, added.stdout], [0, 'User ada@example.com added as an administrator.\n'])
    const { stdout } = await users('list')
    assert.match(stdout, /^EMAIL\tROLE\tCREATED\nada@example\.com\tadministrator\t20\S+\n$/)
    const [ada] = JSON.parse((await users('list -o json')).stdout)
    assert.deepEqual(ada, { email: 'ada@example.com', admin: true, createdAt: ada.createdAt })
    assert.match((await users('list --no-color', { terminal: { stdout: true } })).stdout, /^EMAIL +ROLE +CREATED\nada@/)
    const reset = await users('reset ada@example.com --password-stdin')
    assert.equal(reset.stdout, 'Password of ada@example.com changed.\n')
    assert.match((await users('remove ada@example.com')).stdout, /^User ada@example\.com removed/)
    assert.equal((await users('list')).stdout, 'EMAIL\tROLE\tCREATED\n')
    assert.equal((await users('list -o json')).stdout, '[]\n')
    assert.equal((await users('remove ada@example.com')).exitCode, 1)
  })

  it('svc3 server users remove asks for confirmation on a terminal, and removes nothing unless the answer is yes', async () => {
    await users('add bo@example.com --password-stdin')
    const terminal = { stdin: true, stdout: true }
    const no = await users('remove bo@example.com', { terminal, input: '\n' })
    assert.deepEqual([no.exitCode, no.stdout], [1, ''])
    assert.match(
      no.stderr,
      /^Remove user bo@example\.com\? Their password is lost, .*\. \[y\/N\] svc3: Nothing removed\n/,
    )
    assert.match((await users('list')).stdout, /^bo@example\.com\t/m)
    assert.equal((await users('remove bo@example.com', { terminal, input: 'y\n' })).exitCode, 0)
    await users('add bo@example.com --password-stdin')
    assert.equal((await users('remove bo@example.com --yes', { terminal })).exitCode, 0)
    assert.equal((await users('list')).stdout, 'EMAIL\tROLE\tCREATED\n')
  })

  it('svc3 server users refuses a folder that is not the data folder of a server', async () => {
    const { exitCode, stderr } = await run(['server', 'users', 'list', '--data', path.join(dataDir, 'none')])
    assert.equal(exitCode, 1)
    assert.match(stderr, /is not the data folder of a server\. Choose it with --data DIR/)
  })

  it('svc3 server users add explains that a password is too short, and never prints passwords', async () => {
    const { exitCode, stderr } = await users('add ivy@example.com --password-stdin', { input: 'short\n' })
    assert.equal(exitCode, 1)
    assert.match(stderr, /^svc3: The password is too short\nsvc3: Use at least \d+ characters\n$/)
    await users('add ivy@example.com --password-stdin')
    const again = await users('add ivy@example.com --password-stdin', { input: 'ivy@example.com\n' })
    assert.match(again.stderr, /^svc3: User \[redacted\] already exists\n/)
    await users('remove ivy@example.com')
  })

  it('svc3 server users add asks twice on a terminal, and reads a pipe only with --password-stdin', async () => {
    const typed = await users('add grace@example.com', { input: 'a long password\r', terminal: { stdin: true } })
    assert.deepEqual(typed.echo, [false, true, false, true])
    assert.match(typed.stderr, /^New password: \nRepeat the password: \n$/)
    assert.equal(typed.exitCode, 0)
    const piped = await users('add hedy@example.com')
    assert.equal(piped.exitCode, 2)
    assert.match(piped.stderr, /A password is required\n.*--password-stdin/)
  })
})

describe('svc3 server token', () => {
  before(() => users('remove grace@example.com'))
  const token = (line = '') => run(['server', 'token', ...line.split(' ').filter(Boolean), '--data', dataDir])
  /** What the token says, once it was verified with the keys of the data folder, and the events. */
  const inspect = async (text: string) => {
    await using stack = new AsyncDisposableStack()
    const store = await openStore(`sqlite:${dataDir}`)
    stack.defer(() => store.close())
    const collections = stack.use(await openCollections(store))
    const secrets = new Secrets(await loadKeyring(takeKeySource(dataDir, {}), false))
    using keys = await loadSigningKeys(collections.signingKeys, secrets, systemClock)
    const users = new UserDirectory(collections.users, secrets)
    const { isCurrent } = createAccounts(collections, (uid) => users.isCurrent(uid))
    const principal = await createTokens(keys, systemClock, isCurrent).verify(text.trim())
    return { principal, events: collections.events.list('svc-default').map(({ value }) => value) }
  }

  it('svc3 server token creates the first administrator and a token for them, with an event', async () => {
    assert.equal((await users('list -o json')).stdout, '[]\n')
    const { exitCode, stdout, stderr } = await token()
    assert.deepEqual([exitCode, stderr], [0, ''])
    const { principal, events } = await inspect(stdout)
    assert.deepEqual([principal?.kind, principal?.name], ['user', 'admin@localhost'])
    assert.equal(principal?.kind === 'user' && principal.admin, true)
    const { exp = 0, iat = 0 } = decodeJwt(stdout.trim())
    assert.equal(exp - iat, 3_600)
    const [event] = events
    assert.deepEqual(
      [event?.reason, event?.audience, event?.message],
      ['CreateAdministratorToken', 'admin', 'A token for admin@localhost was created on the machine of the server'],
    )
    assert.doesNotMatch(JSON.stringify(events), /eyJ/)
    await users('remove admin@localhost')
    assert.equal((await inspect(stdout)).principal, undefined)
  })

  it('svc3 server token takes the oldest administrator, or the one that is named; others are refused', async () => {
    await users('add dev@example.com --password-stdin')
    const without = await token()
    assert.equal(without.exitCode, 1)
    assert.match(without.stderr, /^svc3: User admin@localhost is not an administrator\nsvc3: .*svc3 server users list/)
    await users('add ada@example.com --admin --password-stdin')
    await users('add bo@example.com --admin --password-stdin')
    assert.equal((await inspect((await token()).stdout)).principal?.name, 'ada@example.com')
    assert.equal((await inspect((await token('--user Bo@example.com')).stdout)).principal?.name, 'bo@example.com')
    for (const user of ['dev@example.com', 'cy@example.com', 'x'])
      assert.deepEqual([(await token(`--user ${user}`)).exitCode, (await token(`--user ${user}`)).stdout], [1, ''])
    for (const user of ['dev', 'ada', 'bo']) await users(`remove ${user}@example.com`)
    assert.equal((await users('list -o json')).stdout, '[]\n', 'a refusal creates no user')
  })

  it('svc3 server token writes to a file that only its owner can read, also if it was there', async () => {
    const file = path.join(dataDir, 'token.txt')
    await fs.writeFile(file, 'a text that is longer than a token '.repeat(100), { mode: 0o644 })
    const { exitCode, stdout } = await token(`--output ${file}`)
    assert.deepEqual([exitCode, stdout], [0, ''])
    assert.equal((await fs.stat(file)).mode & 0o777, 0o600)
    const text = await fs.readFile(file, 'utf8')
    assert.match(text, /^[\w-]+\.[\w-]+\.[\w-]+\n$/)
    assert.ok((await inspect(text)).principal)
    assert.equal((await token('--output /none/x')).exitCode, 1)
    await users('remove admin@localhost')
  })

  it('svc3 server token works with an external identity provider, whose users are not here', async () => {
    const auth = { issuer: 'https://login.example.com', clientId: 'svc3' }
    await fs.writeFile(path.join(dataDir, 'config.json'), JSON.stringify({ auth }))
    const { stdout } = await token('--user Ana@example.com')
    const { principal } = await inspect(stdout)
    assert.deepEqual(principal, { kind: 'user', name: 'ana@example.com', admin: true })
    assert.equal((await token('--user ana')).exitCode, 1)
    assert.equal((await users('list -o json')).stdout, '[]\n')
    await fs.rm(path.join(dataDir, 'config.json'))
  })
})
