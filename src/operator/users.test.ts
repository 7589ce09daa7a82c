// svc3 server users, on the data folder of a service that has been started once.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type FakeHostOptions, run } from '../../test/support/rigs/cli-host.ts'
import { loadKeyring, takeKeySource } from '../auth/keyring.ts'
import { Secrets } from '../auth/secrets.ts'
import { loadSigningKeys } from '../auth/signing-keys.ts'
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
