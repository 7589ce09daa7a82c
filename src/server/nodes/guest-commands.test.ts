// Scripts in a guest by SSH: a real SSH server plays the guest.
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import net from 'node:net'
import { after, before, describe, it } from 'node:test'
import ssh2 from 'ssh2'
import { runAsRoot } from './guest-commands.ts'

const { privateKey } = generateKeyPairSync('rsa', {
  modulusLength: 2_048,
  privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
  publicKeyEncoding: { type: 'pkcs1', format: 'pem' },
})

describe('a script in a guest', () => {
  /** How the user becomes root. */
  let root = 'is'
  let code = 0
  const commands: string[] = []
  const inputs: string[] = []
  const guest = new ssh2.Server({ hostKeys: [privateKey] }, (client) => {
    client.on('error', () => undefined)
    client.on('authentication', (attempt) => {
      const isRight = attempt.method === 'password' && attempt.username === 'admin' && attempt.password === 'hunter2!'
      const isKey = attempt.method === 'publickey'
      return isRight || isKey ? attempt.accept() : attempt.reject(['password', 'publickey'])
    })
    client.on('session', (accept) =>
      accept().on('exec', (take, _reject, { command }) => {
        const channel = take()
        let input = ''
        channel.on('data', (data: Buffer) => {
          input += data.toString()
        })
        channel.on('end', () => {
          const isLook = command.includes('svc3-root')
          if (isLook) channel.write(root === '' ? '' : `svc3-root ${root}\n`)
          else {
            commands.push(command)
            inputs.push(input)
            channel.write('no room\n')
          }
          channel.exit(isLook ? 0 : code)
          channel.end()
        })
      }),
    )
  })
  let port = 0
  before(async () => {
    guest.listen(0, '127.0.0.1')
    await once(guest, 'listening')
    port = (guest.address() as net.AddressInfo).port
  })
  after(() => guest.close())

  const run = (more: object = {}, prepare = async () => 'echo secret') =>
    runAsRoot(
      {
        dial: async () => net.connect(port, '127.0.0.1'),
        login: { user: 'admin', password: 'hunter2!' },
        withinMs: 1_000,
        signal: AbortSignal.timeout(20_000),
        ...more,
      },
      prepare,
    )

  it('is run by root, by sudo, or by sudo with a password, and is not part of a command line', async () => {
    for (root of ['is', 'may', 'asks']) await run()
    assert.deepEqual(commands, ['sh -s', 'sudo -n sh -s', `sudo -k -S -p '' sh -s`])
    assert.deepEqual(inputs, ['echo secret', 'echo secret', 'hunter2!\necho secret'])
  })

  it('is created only after the login, and errors are sentences', async () => {
    const never = async (): Promise<string> => assert.fail('it was made')
    root = ''
    await assert.rejects(run({}, never), { message: 'User admin of the guest is not root, and the guest has no sudo' })
    await assert.rejects(run({ login: { user: 'admin', password: 'wrong' } }, never), {
      message: 'The guest refused user admin or its password',
    })
    root = 'asks'
    await assert.rejects(run({ login: { user: 'admin', privateKey } }, never), {
      message: 'sudo in the guest requires a password of user admin',
    })
    const dial = async (): Promise<never> => {
      throw new Error('not up')
    }
    await assert.rejects(run({ dial, withinMs: 10 }, never), {
      message: 'SSH in the guest did not respond within 0 s (not up)',
    })
    root = 'is'
    code = 3
    await assert.rejects(run(), { message: 'The script in the guest ended with code 3: no room' })
  })
})
