// The small image, for CI jobs: a real guest, and Debian's own ssh, scp, sftp and rsync, which log in as jobs do, run bash, copy
// files there and back, and use git and curl in it.
import assert from 'node:assert/strict'
import { randomBytes, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import http from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { childEnvironment, exec } from '../../src/platform/exec.ts'
import { openGuest, type SshPlace, seedGuests, testedArchitectures } from '../support/guests/guest.ts'
import { type DevServer, makeFolder, svc3 as run, startDev } from '../support/processes/dev-server.ts'
import { makePair } from '../support/tools/certificates.ts'

const timeoutMs = 180_000
let folder: string
let data: string
let dev: DevServer
const inFolder = (name: string): string => path.join(folder, name)

before(async () => {
  folder = await makeFolder()
  data = inFolder('data')
  const names = testedArchitectures.map((architecture) => `small-${architecture}` as const)
  await seedGuests(path.join(data, 'images'), names)
  dev = await startDev(data)
  await fs.writeFile(inFolder('askpass'), '#!/bin/sh\necho admin\n', { mode: 0o700 })
  await exec('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', inFolder('key')])
})
after(async () => {
  await dev.kill('SIGTERM')
  await fs.rm(folder, { recursive: true, force: true })
})

/** A client that asks for a password gets it from a program, as there is no terminal. */
const env = (): Record<string, string> => ({
  ...childEnvironment,
  SSH_ASKPASS: inFolder('askpass'),
  SSH_ASKPASS_REQUIRE: 'force',
})
const call = async (program: string, args: readonly string[], input = ''): Promise<string> =>
  (await exec(program, args, { env: env(), timeoutMs, input })).stdout.trim()

for (const architecture of testedArchitectures)
  describe(`small-${architecture}`, () => {
    const name = `ci-${architecture}`
    const config = (): string => inFolder(`${architecture}.ssh`)
    /** A command as a client of OpenSSH sends it; what it printed. */
    const ssh = (command: string, options: readonly string[] = []): Promise<string> =>
      call('ssh', ['-F', config(), ...options, 'guest', command])

    before(async () => {
      const metadata = ['--metadata', 'build=4711']
      const deployed = await run(
        ['vm', 'deploy', name, '-i', `small-${architecture}`, '-c', '1', '-m', '0.5', ...metadata],
        { env: { SVC3_DATA: data } },
      )
      assert.equal(deployed.code, 0, deployed.stderr)
      const vm = (await dev.call('GET', `/api/v1/namespaces/svc-default/vms/${name}`)).body as unknown as SshPlace
      ;(await openGuest(vm))[Symbol.dispose]()
      const lines = [
        'Host guest',
        `HostName ${vm.ip}`,
        `Port ${vm.ssh}`,
        'User admin',
        'StrictHostKeyChecking no',
        `UserKnownHostsFile ${inFolder(`${architecture}.known`)}`,
        'LogLevel ERROR',
        'ConnectTimeout 120',
      ]
      await fs.writeFile(config(), `${lines.join('\n')}\n`)
    })
    after(() => run(['vm', 'delete', name, '--yes'], { env: { SVC3_DATA: data } }))

    it(`small-${architecture} lets admin in by password, with bash, a home to write to, sudo, and busybox as /bin/sh`, async () => {
      const who = await ssh('[[ $SHELL == */bash ]] && touch ~/mine && echo "$(id -un) $BASH_VERSION $(sudo id -un)"')
      assert.match(who, /^admin \d+\.\d+\S* root$/)
      assert.equal(await ssh('readlink -f /bin/sh'), '/usr/bin/busybox')
      assert.equal(await ssh('LC_ALL=C.UTF-8 bash -lc "echo at home in $HOME" 2>&1'), 'at home in /home/admin')
    })

    it(`small-${architecture} lets admin in by key`, async () => {
      await call('scp', ['-F', config(), `${inFolder('key')}.pub`, 'guest:key.pub'])
      await ssh('mkdir -p -m 700 .ssh && mv key.pub .ssh/authorized_keys && chmod 600 .ssh/authorized_keys')
      assert.equal(await ssh('id -un', ['-o', 'BatchMode=yes', '-i', inFolder('key')]), 'admin')
      await assert.rejects(ssh('id -un', ['-o', 'BatchMode=yes', '-o', 'IdentityFile=none']), /Permission denied/)
    })

    const copies: Readonly<Record<string, (file: string, back: string) => Promise<unknown>>> = {
      'scp (over SFTP)': async (file, back) => {
        await call('scp', ['-F', config(), file, 'guest:file'])
        await call('scp', ['-F', config(), 'guest:file', back])
      },
      "scp -O (scp's own protocol)": async (file, back) => {
        await call('scp', ['-O', '-F', config(), file, 'guest:file'])
        await call('scp', ['-O', '-F', config(), 'guest:file', back])
      },
      sftp: (file, back) =>
        call(
          'sftp',
          ['-F', config(), '-o', 'BatchMode=no', '-b', '-', 'guest'],
          `put ${file} file\nget file ${back}\n`,
        ),
      rsync: async (file, back) => {
        const over = ['--checksum', '-e', `ssh -F ${config()}`]
        await call('rsync', [...over, file, 'guest:file'])
        await call('rsync', [...over, 'guest:file', back])
      },
    }
    for (const [by, copy] of Object.entries(copies))
      it(`small-${architecture}: a file goes there and back by ${by}`, async () => {
        const bytes = randomBytes(300_000)
        await fs.writeFile(inFolder('file'), bytes)
        await fs.rm(inFolder('back'), { force: true })
        await ssh('rm -f file')
        await copy(inFolder('file'), inFolder('back'))
        assert.ok(bytes.equals(await fs.readFile(inFolder('back'))), 'the same bytes')
      })

    it(`small-${architecture}: git commits, and clones over SSH`, async () => {
      const commit = 'git init -q -b main repo && cd repo && echo text > file && git add file && git commit -qm first'
      await ssh('git config --global user.name CI && git config --global user.email ci@example.com')
      await ssh(`rm -rf repo && ${commit}`)
      await ssh(
        'rm -f own* && ssh-keygen -q -t ed25519 -N "" -f own && mkdir -p -m 700 .ssh && cat own.pub >> .ssh/authorized_keys',
      )
      const clone = 'git clone -q admin@127.0.0.1:repo clone && git -C clone log --format="%an %s" && cat clone/file'
      assert.equal(
        await ssh(`rm -rf clone; export GIT_SSH_COMMAND="ssh -i own -o StrictHostKeyChecking=no -q"; ${clone}`),
        'CI first\ntext',
      )
    })

    it(`small-${architecture}: curl reads the metadata of the VM`, async () => {
      assert.equal(await ssh('curl -sf http://169.254.169.254/metadata/build'), '{"value":"4711"}')
    })

    it(`small-${architecture}: curl and git talk HTTPS, and only to servers whose certificate they trust`, async (t) => {
      const line = `${'1'.repeat(40)}\trefs/heads/main\n`
      const pair = await makePair()
      const answer: http.RequestListener = (_, response) => void response.end(line)
      const servers = [http.createServer(answer), https.createServer(pair, answer)]
      for (const server of servers) await once(server.listen(0, '127.0.0.1'), 'listening')
      t.after(() => servers.map((server) => server.close()))
      const [plain, secure] = servers.map((server) => (server.address() as AddressInfo).port)
      await fs.writeFile(inFolder('ca.pem'), pair.cert)
      await call('scp', ['-F', config(), inFolder('ca.pem'), 'guest:ca.pem'])
      // The guest's network ends at the guest: the servers of this test are reached through SSH.
      const forwards = ['-R', `8080:127.0.0.1:${plain}`, '-R', `8443:127.0.0.1:${secure}`]
      const inGuest = (command: string): Promise<string> => ssh(command, forwards)
      assert.equal(await inGuest('curl -sf http://127.0.0.1:8080/'), line.trim())
      assert.equal(await inGuest('git ls-remote http://127.0.0.1:8080/repo'), line.trim())
      assert.equal(await inGuest('curl -sf --cacert ca.pem https://127.0.0.1:8443/'), line.trim())
      assert.equal(await inGuest('curl -s https://127.0.0.1:8443/; echo $?'), '60', 'the certificate is refused')
      assert.equal(await inGuest('GIT_SSL_CAINFO=ca.pem git ls-remote https://127.0.0.1:8443/repo'), line.trim())
      await assert.rejects(inGuest('git ls-remote https://127.0.0.1:8443/repo'), /certificate/)
    })

    it(`small-${architecture} trusts the authorities that Debian does`, async () => {
      const bundle = await ssh('cat /etc/ssl/certs/ca-certificates.crt')
      const certificates = bundle.split(/(?<=-----END CERTIFICATE-----\n)/).map((text) => new X509Certificate(text))
      assert.ok(certificates.length > 100, `${certificates.length} certificates`)
      assert.ok(certificates.every(({ ca }) => ca))
    })
  })
