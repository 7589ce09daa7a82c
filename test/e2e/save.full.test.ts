// Save and commit with real guests, through the command line: what was written and what ran is in the image; a VM of
// the same shape resumes from there, another one boots; a commit is for the next VM, and not for those that run.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { type Guest, openGuest, seedTiny, testedArchitectures } from '../support/guests/guest.ts'
import { type DevServer, makeFolder, svc3 as run, startDev } from '../support/processes/dev-server.ts'
import { randomDisc } from '../support/tools/disc.ts'

let dev: DevServer
let data: string

before(async () => {
  data = await makeFolder()
  await seedTiny(`${data}/images`, ['amd64', 'arm64'])
  dev = await startDev(data)
})
after(async () => {
  const { stdout } = await run(['vm', 'list', '-o', 'json'], { env: { SVC3_DATA: data } })
  const names = (JSON.parse(stdout || '[]') as { name: string }[]).map(({ name }) => name)
  if (names.length > 0) await run(['vm', 'delete', ...names], { env: { SVC3_DATA: data }, timeoutMs: 300_000 })
  await dev.kill('SIGTERM')
  await fs.rm(data, { recursive: true, force: true })
})

const ok = async (...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await run(args, { env: { SVC3_DATA: data }, timeoutMs: 240_000 })
  assert.equal(code, 0, `svc3 ${args.join(' ')}: ${stderr}${stdout}`)
  return stdout
}
const vm = async (name: string): Promise<{ ip: string; ssh: number; warning?: string }> =>
  (await dev.call('GET', `/api/v1/namespaces/svc-default/vms/${name}`)).body as never
const into = async (name: string): Promise<Guest> => openGuest(await vm(name), {}, 300_000)
const shape = (cpu: string): string[] => ['-c', cpu, '-m', '0.3']

/** Counts in memory only, until it is enough; the file is for reading it, and is never empty. */
const startCounter =
  '(n=0; until [ -e /tmp/enough ]; do n=$((n+1)); echo $n > /tmp/next; mv /tmp/next /tmp/count; sleep 0.2; done) < /dev/null > /dev/null 2>&1 & echo begun'

/** The guest reads what was uploaded, to the last byte. The small guest loads what it needs to boot, and no more. */
async function readsDisc(guest: Guest, disc: string): Promise<void> {
  const hash = createHash('sha256')
    .update(await fs.readFile(disc))
    .digest('hex')
  // The drive appears a moment after its driver is loaded.
  const drive =
    'for m in ahci sr_mod; do sudo modprobe $m; done; n=0; until [ -b /dev/sr0 ]; do n=$((n+1)); [ $n -lt 500 ] || exit 1; sleep 0.2; done'
  assert.match(await guest.run(`${drive}; sudo sha256sum /dev/sr0`), new RegExp(`^${hash} `))
}

for (const architecture of testedArchitectures)
  describe(`an ${architecture} VM that is saved`, () => {
    const image = `tiny-${architecture}`
    const name = (word: string): string => `${word}-${architecture}`
    const isIntel = architecture === 'amd64'
    let boot = ''
    let count = 0

    it(`an ${architecture} VM that is saved goes on, and its image is Ready with all of it`, async () => {
      await ok('vm', 'deploy', name('a'), '-i', image, ...shape('1'))
      using guest = await into(name('a'))
      await guest.run('echo kept > /home/admin/file; sync')
      await guest.run(startCounter)
      boot = await guest.run('cat /proc/sys/kernel/random/boot_id')
      await guest.run('until [ "$(cat /tmp/count 2>/dev/null || echo 0)" -gt 3 ]; do sleep 0.2; done')
      count = Number(await guest.run('cat /tmp/count'))
      assert.match(await ok('vm', 'save', name('a'), name('saved'), '-d', 'With a file', '--wait'), /is Ready/)
      assert.equal(await guest.run('cat /home/admin/file'), 'kept', 'the connection has outlived it')
      const [shown] = JSON.parse(await ok('image', 'list', name('saved'), '-o', 'json'))
      assert.deepEqual([shown.state, shown.type, shown.sourceType], ['Ready', architecture, 'vm'])
      assert.equal(shown.description, 'With a file')
      await ok('vm', 'delete', name('a'))
    })

    it(`an ${architecture} VM that is saved is there again in a VM of the same shape: the file, and the counter that goes on counting`, async () => {
      await ok('vm', 'deploy', name('b'), '-i', name('saved'), ...shape('1'))
      using guest = await into(name('b'))
      // The first look: nothing of the saved VM is left by the time that the deploy answers.
      const from = 'http://169.254.169.254/metadata/orka_vm_name'
      assert.equal(await guest.run(`hostname; wget -qO- ${from}`), `${name('b')}\n{"value":"${name('b')}"}`)
      assert.equal(await guest.run('cat /home/admin/file'), 'kept')
      assert.equal(await guest.run('cat /proc/sys/kernel/random/boot_id'), boot, 'it was not booted')
      assert.equal((await vm(name('b'))).warning, undefined)
      const first = Number(await guest.run('cat /tmp/count'))
      assert.ok(first >= count, `${first} after ${count}`)
      await guest.run(`until [ "$(cat /tmp/count)" -gt ${first} ]; do sleep 0.2; done; touch /tmp/enough`)
    })

    it(`an ${architecture} VM that is saved boots from its disk in another shape, which says so`, async () => {
      await ok('vm', 'deploy', name('c'), '-i', name('saved'), ...shape('2'))
      assert.match((await vm(name('c'))).warning ?? '', /booted from the disk/)
      if (isIntel) return
      using guest = await into(name('c'))
      assert.equal(await guest.run('cat /home/admin/file'), 'kept')
      assert.notEqual(await guest.run('cat /proc/sys/kernel/random/boot_id'), boot)
    })

    it(`an ${architecture} VM that is saved is committed for the next VM, and not for one that runs; --cold boots that`, async () => {
      using guest = await into(name('b'))
      await guest.run('echo more > /home/admin/second; sync')
      if (isIntel) {
        const refused = await run(['vm', 'commit', name('b')], { env: { SVC3_DATA: data } })
        assert.deepEqual([refused.code, refused.stderr.includes(name('c'))], [6, true], refused.stderr)
        await ok('vm', 'delete', name('c'))
      }
      await ok('vm', 'commit', name('b'), '--wait')
      // With a disc in its drive, which is for Intel-based VMs.
      const disc = path.join(data, 'disc.iso')
      await fs.writeFile(disc, randomDisc(3 * 2 ** 20))
      if (isIntel) await ok('iso', 'upload', disc)
      const cold = isIntel ? ['--cold', '--iso', 'disc.iso'] : []
      await ok('vm', 'deploy', name('f'), '-i', name('saved'), ...shape('1'), ...cold)
      using next = await into(name('f'))
      assert.equal(await next.run('cat /home/admin/file /home/admin/second'), 'kept\nmore')
      assert.equal((await next.run('cat /proc/sys/kernel/random/boot_id')) === boot, !isIntel)
      if (isIntel) return void (await readsDisc(next, disc))
      using old = await into(name('c'))
      assert.equal(await old.run('ls /home/admin/second 2>/dev/null || echo none'), 'none')
    })
  })
