// docs/operate/several-servers.md is followed on three hosts with a real systemd each: its commands and units, with the
// users that they name. Only addresses differ.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { it } from 'node:test'
import { exec } from '../../src/platform/exec.ts'
import { makeFolder, root } from '../support/processes/dev-server.ts'
import { openNetwork } from '../support/processes/hosts.ts'
import { blocksBelow } from '../support/processes/operated-cluster.ts'
import { type SystemdHost, startSystemd } from '../support/processes/systemd-host.ts'
import { eventually } from '../support/tools/eventually.ts'

const names = ['a', 'b', 'c'] as const
const timeoutMs = 120_000

it('three servers come up as the page says, and its commands work on them', { timeout: 1_200_000 }, async () => {
  await using cleanup = new AsyncDisposableStack()
  const folder = await makeFolder()
  cleanup.defer(() => fs.rm(folder, { recursive: true, force: true }))
  const network = cleanup.use(await openNetwork())
  assert.ok(network.isReal, 'this needs root, and network namespaces')
  const places = await Promise.all(names.map((name) => network.host(name)))
  const hosts: SystemdHost[] = []
  for (const place of places) hosts.push(cleanup.use(await startSystemd(place)))
  const [first] = hosts
  assert.ok(first)
  const all = (work: (host: SystemdHost, n: number) => Promise<unknown>) => Promise.all(hosts.map(work))

  const page = await fs.readFile(path.join(root, 'docs/operate/several-servers.md'), 'utf8')
  const moved = (text: string): string =>
    places.reduce((all, { address }, n) => all.replaceAll(`10.0.0.${11 + n}`, address), text)
  /** What is written for host a, for host n. */
  const forHost = (text: string, n: number): string =>
    moved(
      text
        .replaceAll(/\ba\.(pem|key)\b/g, `${names[n]}.$1`)
        .replaceAll('--name=a', `--name=${names[n]}`)
        .replaceAll(
          /((?:advertise|listen)-[a-z-]*urls=|--internal-url )https:\/\/10\.0\.0\.11/g,
          `$1https://10.0.0.${11 + n}`,
        ),
    )

  // This checkout's svc3, in /opt/svc3.
  await exec('tar', ['-chzf', path.join(folder, 'svc3.tgz'), 'bin', 'dist', 'package.json', '.node/bin/node'], {
    cwd: root,
    timeoutMs: 120_000,
  })
  const program = await fs.readFile(path.join(folder, 'svc3.tgz'))
  for (const host of hosts)
    await host.run(
      'mkdir -p /opt/svc3 && tar -xzf - -C /opt/svc3 --no-same-owner; ln -s /opt/svc3/bin/svc3 /usr/local/bin/svc3',
      program,
    )

  const [make = '', keep = ''] = blocksBelow(page, '1. Certificates for etcd')
  const made = path.join(folder, 'made')
  await fs.mkdir(made)
  await exec('sh', ['-ec', moved(make)], { cwd: made })
  const [makeKey = '', keepKey = ''] = blocksBelow(page, '3. The master key, once')
  await exec('sh', ['-ec', makeKey], { cwd: made })
  for (const [n, host] of hosts.entries()) {
    const files = ['ca.pem', `${names[n]}.pem`, `${names[n]}.key`, 'svc3.pem', 'svc3.key', 'master.key']
    await exec('tar', ['-cf', path.join(folder, 'files.tar'), ...files], { cwd: made })
    await host.run(
      'mkdir /root/made && tar -xf - -C /root/made --no-same-owner',
      await fs.readFile(path.join(folder, 'files.tar')),
    )
    await host.run(`cd /root/made; ${forHost(keep, n)}${keepKey}`)
    await host.run('rm -r /root/made')
  }

  const [etcdUnit = ''] = blocksBelow(page, '2. Three members of etcd')
  const [, etcdStart = ''] = /`(systemctl [^`]* etcd)`/.exec(page) ?? []
  await all(async (host, n) => {
    await host.run('cat > /etc/systemd/system/etcd.service', forHost(etcdUnit, n))
    await host.run(etcdStart)
  })
  const [unit = '', add = ''] = blocksBelow(page, '4. Three servers')
  const [, start = ''] = /`(systemctl [^`]* --now svc3-server)`/.exec(page) ?? []
  await all(async (host, n) => {
    await host.run('cat > /etc/systemd/system/svc3-server.service', forHost(unit, n))
    await host.run(start)
  })
  const areReady = () =>
    all(async (host, n) =>
      eventually(async () => {
        const asked = await host.run(
          `curl -sk https://${places[n]?.address}:8443/readyz || journalctl -n 30 --no-pager -u svc3-server -u etcd`,
        )
        assert.equal(asked, '{"status":"ok","message":"ready"}')
      }, timeoutMs),
    )
  await areReady()
  const userOf = async (service: string): Promise<string> =>
    (await first.run(`ps -o user= -p "$(systemctl show -p MainPID --value ${service})"`)).trim()
  assert.deepEqual([await userOf('etcd'), await userOf('svc3')], ['etcd', 'svc3'])

  assert.match(await first.run(`${add.trim()} --password-stdin`, 'a long pass phrase\n'), /you@example.com added/)
  const key = 'SVC3_MASTER_KEY=$(cat /etc/svc3/master.key)'
  assert.match(await first.run(`${key} svc3 server users list --data /var/lib/svc3`), /you@example.com/)
  assert.match(await first.run(`${key} svc3 server rotate-signing-keys --revoke --data /var/lib/svc3`), /from now on/)
  assert.match(await first.run('svc3 server backup /root/all.tar --data /var/lib/svc3'), /records as of revision/)
  for (const host of hosts) {
    await host.run('systemctl restart etcd svc3-server')
    await areReady()
  }

  // One server alone, with SQLite, out of that backup; then to etcd.
  const alone = '/var/lib/svc3-new'
  const store = moved(/SVC3_STORE=(.*)\/svc3\?/.exec(unit)?.[1] ?? '')
  const files = /\?ca=.*key(?=")/.exec(unit)?.[0]
  await first.run(
    `svc3 server restore /root/all.tar --data ${alone}; install -m 0600 /etc/svc3/master.key ${alone}; chown -R svc3: ${alone}`,
  )
  const serve = (...words: string[]): Promise<string> =>
    first.run(
      `systemd-run --unit=alone -p User=svc3 /opt/svc3/bin/svc3 server --listen 127.0.0.1:9443 --data ${alone} ${words.join(' ')}`,
    )
  const isReady = () =>
    eventually(
      async () => assert.match(await first.run('curl -sk https://127.0.0.1:9443/readyz'), /"ready"/),
      timeoutMs,
    )
  await serve()
  await isReady()
  assert.match(await first.run(`svc3 server rotate-signing-keys --data ${alone}`), /signs tokens from/)
  assert.match(await first.run(`svc3 server backup ${alone}/own.tar --data ${alone}`), /records as of revision/)
  await isReady()
  await first.run('systemctl stop alone')
  const to = `'${store}/moved${files}'`
  assert.match(await first.run(`svc3 server migrate-store ${alone} ${to}`), /Moved \d+ records/)
  assert.equal(await first.run(`find ${alone} ! -user svc3`), '')
  await serve('--store', to)
  await isReady()
})
