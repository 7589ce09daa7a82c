// Real guests of both architectures through the real program: what a person does from deploy to delete, each time with a
// look inside the guest.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import fs from 'node:fs/promises'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { greeting, openGuest, seedTiny } from '../support/guests/guest.ts'
import { type DevServer, makeFolder, svc3 as run, startDev } from '../support/processes/dev-server.ts'
import { isAllTested } from '../support/tools/all-tested.ts'
import { eventually } from '../support/tools/eventually.ts'

let dev: DevServer
let data: string
const vms = '/api/v1/namespaces/svc-default/vms'

before(async () => {
  data = await makeFolder()
  await seedTiny(path.join(data, 'images'), ['amd64', 'arm64'])
  dev = await startDev(data)
})
after(async () => {
  await run(['vm', 'delete', 'demo', 'apple'], { env: { SVC3_DATA: data } })
  await dev.kill('SIGTERM')
  assert.deepEqual(processesOf('nodes'), [], 'every process of the test has ended')
  await fs.rm(data, { recursive: true, force: true })
})

const intel = 'nodes/dev-amd64-1'
const apple = 'nodes/dev-arm64-1'

/** QEMU and what belongs to it, by the folder of the data that they work in: their pids. */
function processesOf(folder: string): number[] {
  const pids = readdirSync('/proc').map(Number).filter(Boolean)
  return pids.filter((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/cwd`).startsWith(path.join(data, folder))
    } catch {
      return false
    }
  })
}

const commandOf = (pid: number): string => readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[0] ?? ''

const cli = (...args: string[]) => run(args, { env: { SVC3_DATA: data } })
const ok = async (...args: string[]): Promise<string> => {
  const { code, stdout, stderr } = await cli(...args)
  assert.equal(code, 0, `svc3 ${args.join(' ')}: ${stderr}${stdout}`)
  return stdout
}
interface Shown {
  readonly [field: string]: unknown
  readonly ip: string
  readonly ssh: number
  readonly vnc: number
  readonly status: string
  readonly powerState: string
  readonly uid: string
}
const show = async (name: string): Promise<Shown> => (await dev.call('GET', `${vms}/${name}`)).body as never
const guest = async (name: string) => openGuest(await show(name))

describe('an Intel-based VM', () => {
  it('an Intel-based VM is deployed, and takes a login by SSH', async () => {
    const [vm] = JSON.parse(
      await ok('vm', 'deploy', 'demo', '-i', 'tiny-amd64', '-c', '2', '-m', '0.5', '-p', '18099:99', '--metadata',
        'build=4711', '--label', 'team=ios', '-o', 'json'),
    ) // biome-ignore format: one command line
    assert.deepEqual([vm.status, vm.powerState, vm.architecture, vm.memory], ['Running', 'running', 'amd64', '0.50Gi'])
    using inside = await guest('demo')
    assert.match(await inside.run('uname -m'), /x86_64/)
    assert.equal(await inside.run('nproc'), '2')
    const kib = Number((await inside.run('cat /proc/meminfo')).match(/MemTotal:\s+(\d+)/)?.[1])
    assert.ok(kib > 350_000 && kib < 524_288, `${kib} KiB of memory`)
    await inside.run('echo kept > ~/file && sync')
  })

  it('an Intel-based VM is reached through the service: ssh, its log, its screen', async () => {
    const ssh = await run(['vm', 'ssh', 'demo', '--password-stdin', '--', 'cat', 'file'], {
      env: { SVC3_DATA: data },
      input: 'admin\n',
    })
    assert.deepEqual([ssh.code, ssh.stdout.trim()], [0, 'kept'], ssh.stderr)
    assert.match(await ok('vm', 'logs', 'demo', '--tail', '200'), /SSH is up/)
    const { ip, vnc } = await show('demo')
    assert.match((await greeting(ip, vnc)) ?? '', /^RFB 003/)
  })

  it('an Intel-based VM does not reach what listens on the loopback of its host', async () => {
    const canary = http.createServer((_request, response) => response.end('canary'))
    await new Promise<void>((resolve) => canary.listen(0, '127.0.0.1', resolve))
    const { port } = canary.address() as AddressInfo
    try {
      using inside = await guest('demo')
      for (const host of ['10.0.2.2', '127.0.0.1']) {
        const route = `sudo ip route replace ${host}/32 via 10.0.2.2 2>/dev/null; `
        const said = await inside.run(`${route}timeout 3 wget -qO- http://${host}:${port}/ 2>&1 || echo refused`)
        assert.doesNotMatch(said, /canary/)
      }
    } finally {
      canary.close()
    }
  })

  it('an Intel-based VM is reached at the ports that were reserved', async () => {
    using inside = await guest('demo')
    await inside.run("sudo sh -c '(while true; do echo from-the-guest | nc -l -p 99; done) >/dev/null 2>&1 &'")
    // It listens a moment later, and each word is for one caller.
    await eventually(async () => assert.equal((await greeting('127.0.0.1', 18_099, 5_000))?.trim(), 'from-the-guest'))
  })

  it('an Intel-based VM is frozen by suspend, and goes on by resume', async () => {
    using inside = await guest('demo')
    // The file is never empty.
    await inside.run(
      "sh -c '(i=0; until [ -e /tmp/enough ]; do i=$((i+1)); echo $i > /tmp/next; mv /tmp/next /tmp/count; usleep 50000; done) >/dev/null 2>&1 &'",
    )
    await ok('vm', 'suspend', 'demo')
    const { status, powerState, ip, ssh } = await show('demo')
    assert.deepEqual([status, powerState], ['Running', 'suspended'])
    assert.equal(await greeting(ip, ssh, 1_500), undefined, 'SSH hangs')
    assert.equal((await cli('vm', 'start', 'demo')).code, 6)
    await ok('vm', 'resume', 'demo')
    using again = await guest('demo')
    const before = Number(await again.run('cat /tmp/count'))
    await again.run(`until [ "$(cat /tmp/count)" -gt ${before} ]; do usleep 50000; done; touch /tmp/enough`)
  })
})

describe('an Apple silicon-based VM beside it', () => {
  it('an Apple silicon-based VM beside it is deployed, and refuses what is for Intel only', async () => {
    await ok('vm', 'deploy', 'apple', '-i', 'tiny-arm64', '-c', '2', '-m', '0.5', '--metadata', 'build=other')
    using inside = await guest('apple')
    assert.match(await inside.run('uname -m'), /aarch64/)
    await inside.run('echo kept > ~/file && sync')
    for (const command of ['start', 'stop', 'suspend', 'resume', 'revert']) {
      const { code, stderr } = await cli('vm', command, 'apple', ...(command === 'revert' ? ['--yes'] : []))
      assert.equal(code, 2, command)
      assert.match(stderr, /Intel-based VMs only/)
    }
  })

  it('an Apple silicon-based VM beside it reads its metadata, and the other one its own', async () => {
    for (const [name, value] of [
      ['demo', '4711'],
      ['apple', 'other'],
    ] as const) {
      using inside = await guest(name)
      const read = await inside.run('wget -qO- http://169.254.169.254/metadata/build')
      assert.deepEqual(JSON.parse(read), { value })
      const { items } = JSON.parse(await inside.run('wget -qO- http://169.254.169.254/metadata/'))
      const keys = [
        'build',
        'orka_vm_id',
        'orka_vm_name',
        'orka_node_name',
        'orka_base_image',
        'orka_cpu',
        'orka_memory',
      ]
      assert.deepEqual(
        items.map(({ key }: { key: string }) => key),
        keys,
      )
      assert.equal(items[2].value, name)
      await until(async () => {
        const [shown] = JSON.parse(await ok('vm', 'list', name, '-o', 'json')) as {
          conditions: { type: string; status: string }[]
        }[]
        return shown?.conditions.some(({ type, status }) => type === 'Booted' && status === 'True') === true
      })
    }
  })

  it('an Apple silicon-based VM beside it grows without anything more', async () => {
    await ok('vm', 'resize', 'apple', '2')
    using inside = await guest('apple')
    await until(async () => Number((await inside.run('df -k /')).split('\n').at(-1)?.split(/\s+/)[1]) > 1.8 * 2 ** 20)
    assert.equal(await inside.run('cat file'), 'kept')
    await ok('vm', 'delete', 'apple')
    assert.deepEqual(processesOf(apple), [])
  })
})

describe('an Intel-based VM that is switched', () => {
  it('an Intel-based VM that is switched is powered off by stop, keeps its disk, and comes up again by start', async () => {
    await ok('vm', 'stop', 'demo')
    const { status, powerState, ip, ssh } = await show('demo')
    assert.deepEqual([status, powerState], ['Running', 'stopped'])
    assert.deepEqual(processesOf(intel), [])
    assert.equal(await greeting(ip, ssh, 1_000), undefined)
    assert.match(await ok('vm', 'list', 'demo'), /Running/)
    await ok('vm', 'start', 'demo')
    using inside = await guest('demo')
    assert.equal(await inside.run('cat file'), 'kept')
    const log = await ok('vm', 'logs', 'demo')
    assert.doesNotMatch(log, /recovering journal/, 'it was shut down cleanly')
  })

  it('an Intel-based VM that is switched grows with wrong credentials by the disk alone, and refuses sizes that are none', async () => {
    const wrong = await run(['vm', 'resize', 'demo', '2', '-u', 'admin', '--password-stdin'], {
      env: { SVC3_DATA: data },
      input: 'not-it\n',
    })
    assert.equal(wrong.code, 1)
    assert.match(wrong.stdout + wrong.stderr, /growpart/)
    assert.doesNotMatch(wrong.stdout + wrong.stderr, /not-it/)
    assert.deepEqual([(await show('demo')).diskGb, (await show('demo')).powerState], [2, 'running'])
    for (const size of ['2', '1', '2.5', '100000']) assert.notEqual((await cli('vm', 'resize', 'demo', size)).code, 0)
  })

  if (isAllTested) {
    it('an Intel-based VM that is switched grows with right credentials up to its file system', async () => {
      const right = await run(['vm', 'resize', 'demo', '3', '-u', 'admin', '--password-stdin'], {
        env: { SVC3_DATA: data },
        input: 'admin\n',
      })
      assert.equal(right.code, 0, right.stderr)
      using inside = await guest('demo')
      const kib = Number((await inside.run('df -k /')).split('\n').at(-1)?.split(/\s+/)[1])
      assert.ok(kib > 2.7 * 2 ** 20, `df shows ${kib} KiB`)
      assert.equal(await inside.run('cat file'), 'kept')
    })

    it('an Intel-based VM that is switched returns to its image by revert, and loses the rest', async () => {
      await ok('vm', 'revert', 'demo')
      using inside = await guest('demo')
      assert.match(await inside.run('ls file 2>&1 || true'), /No such file/)
    })
  }

  it('an Intel-based VM that is switched stays off when it powers itself off, until somebody starts it', async () => {
    using inside = await guest('demo')
    await inside.run('sudo poweroff').catch(() => undefined)
    await until(async () => (await show('demo')).powerState === 'stopped')
    await ok('vm', 'start', 'demo')
    assert.equal((await show('demo')).powerState, 'running')
  })

  it('an Intel-based VM that is switched shows Failed, with the exit and the last words, when its hypervisor is killed; and can be started', async () => {
    const pid = processesOf(intel).find((each) => commandOf(each).startsWith('qemu-system'))
    assert.ok(pid)
    process.kill(pid, 'SIGKILL')
    await until(async () => (await show('demo')).status === 'Failed')
    assert.match(String((await show('demo')).errorMessage), /signal 9|SIGKILL|killed/i)
    await ok('vm', 'start', 'demo')
    assert.equal((await show('demo')).status, 'Running')
  })

  it('an Intel-based VM that is switched leaves nothing behind when it is deleted', async () => {
    const { uid, ip, ssh } = await show('demo')
    assert.equal(await ok('vm', 'delete', 'demo'), 'Successfully deleted vm demo\n')
    assert.deepEqual(processesOf(intel), [])
    const left = await fs.readdir(data, { recursive: true })
    assert.deepEqual(
      left.filter((file) => file.includes(uid)),
      [],
    )
    assert.equal(await greeting(ip, ssh, 500), undefined)
    assert.equal((await cli('vm', 'list', 'demo')).code, 5)
  })
})

async function until(test: () => Promise<boolean>, timeoutMs = 120_000): Promise<void> {
  const endMs = performance.now() + timeoutMs
  while (!(await test())) {
    assert.ok(performance.now() < endMs, 'it takes too long')
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
}
