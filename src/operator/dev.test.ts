// What `svc3 dev` prints when it starts and stops, and the token in its connection file.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { usersInMemory } from '../../test/support/rigs/users.ts'
import type { Principal } from '../auth/principal.ts'
import { accountIdOf } from '../auth/provider/users.ts'
import type { Tokens } from '../auth/tokens.ts'
import { nextSteps } from '../control-plane/next-steps.ts'
import { createLog } from '../platform/log.ts'
import { adminNote, startingLine } from './dev.ts'
import { leftBehind } from './dev-nodes.ts'

const issued: Principal[] = []
const lines: string[] = []
const log = createLog('warn', (line) => lines.push(line))
const tokens = {
  issue: async (principal: Principal) => ({ token: `token ${issued.push(principal)}` }),
} as unknown as Tokens

it('the token in the connection file belongs to the administrator; without that user there is none, which is logged once', async () => {
  const { users: localUsers } = await usersInMemory()
  const note = adminNote()
  const ask = () => note({ tokens, localUsers, log })
  assert.match((await ask()).adminToken ?? '', /^token/)
  const [user] = localUsers.list()
  assert.ok(user)
  assert.deepEqual(issued.at(-1), { kind: 'user', name: 'admin@localhost', admin: true, uid: accountIdOf(user) })
  await localUsers.reset('admin@localhost', 'another one')
  await ask()
  assert.notEqual((issued.at(-1) as { uid?: string }).uid, accountIdOf(user))
  await localUsers.remove('admin@localhost')
  for (let index = 0; index < 3; index++) assert.deepEqual(await ask(), {})
  assert.equal(lines.length, 1)
  assert.match(lines[0] ?? '', /user admin@localhost not found/)
})

it('the connection file has a token of the administrator with an external identity provider', async () => {
  await adminNote()({ tokens, localUsers: undefined, log })
  assert.deepEqual(issued.at(-1), { kind: 'user', name: 'admin@localhost', admin: true })
})

it('svc3 dev suggests a shell only for VMs that have one', () => {
  const place = { program: 'svc3', dataDir: '/d', apiUrl: 'http://127.0.0.1:8080' }
  const said = (isSimulated: boolean) =>
    nextSteps({ ...place, user: undefined, consoleLink: undefined, context: undefined, variables: [], isSimulated })
  assert.match(said(false), /^ {2}svc3 vm deploy demo .*\n {2}svc3 vm ssh demo\n/m)
  assert.match(said(true), /^ {2}svc3 vm deploy demo .*\n {2}svc3 --help\n/m)
})

it('svc3 dev says what it starts, and when it stops which VMs keep running', () => {
  assert.equal(startingLine({ nodes: { arm64: 1, amd64: 1 } }), 'svc3: Starting the server and 2 nodes\n')
  assert.equal(startingLine({ nodes: { arm64: 0, amd64: 1 } }), 'svc3: Starting the server and 1 node\n')
  assert.equal(leftBehind([], 'bin/svc3'), '')
  assert.match(
    leftBehind(['demo'], 'bin/svc3'),
    /^1 VM keeps running: demo\. The next start finds it\.\nTo start over, delete it with .*svc3 vm delete .*\n$/,
  )
  assert.match(
    leftBehind(['demo', 'svc-ios/web'], 'bin/svc3'),
    /^2 VMs keep running: demo, svc-ios\/web\. The next start finds them\./,
  )
  assert.match(
    leftBehind(
      Array.from({ length: 30 }, (_, index) => `vm-${index}`),
      'bin/svc3',
    ),
    /vm-19, 10 more\. The/,
  )
})
