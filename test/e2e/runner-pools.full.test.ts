// Runner pools on real guests: a stub runner in an image reads its configuration from its environment, runs a shell step and exits.
// Guests do not reach this host's loopback, so what the stub says goes by its console, and the test tells the stand-in of GitHub.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { seedTiny } from '../support/guests/guest.ts'
import { makeFolder, startDev, svc3 } from '../support/processes/dev-server.ts'
import { GitHubStandIn } from '../support/stand-ins/github.ts'
import { isAllTested } from '../support/tools/all-tested.ts'
import { eventually } from '../support/tools/eventually.ts'

const space = '/api/v1/namespaces/svc-default'
const stub = `set -e; umask 022; mkdir -p /opt/actions-runner; cat > /opt/actions-runner/run.sh <<'EOF'
#!/bin/sh
[ $# = 0 ] || exit 2
say() { echo "$1" | if [ -w /dev/console ]; then cat > /dev/console; else sudo tee /dev/console > /dev/null; fi; }
say "stub runner $ACTIONS_RUNNER_INPUT_JITCONFIG boot $(cat /proc/sys/kernel/random/boot_id)"
sh -c 'expr 6 \\* 7' > /tmp/step
sleep 2
say "stub step $(cat /tmp/step) $ACTIONS_RUNNER_INPUT_JITCONFIG end"
sleep 2
exit 7
EOF
chmod +x /opt/actions-runner/run.sh; rm -f /var/lib/svc3/first-boot; sync`

/** Follows the consoles of all VMs, and lets their runners connect and end at the stand-in. */
async function bridge(github: GitHubStandIn, folder: string, boots: string[], signal: AbortSignal) {
  const ends = new Map<string, () => void>()
  const connected = new Set<string>()
  while (!signal.aborted) {
    for await (const file of fs.glob('nodes/*/vms/*/console.log', { cwd: folder })) {
      const text = await fs.readFile(path.join(folder, file), 'utf8').catch(() => '')
      const [, jit, boot] = /stub runner (\S+) boot (\S+)/.exec(text) ?? []
      if (jit === undefined || boot === undefined) continue
      if (!connected.has(jit)) {
        connected.add(jit)
        boots.push(boot)
        void github.connect(jit).then((running) => running && ends.set(jit, () => running.end()))
      }
      if (text.includes(`stub step 42 ${jit} end`)) ends.get(jit)?.()
    }
    await sleep(100)
  }
}

it('jobs run in a guest each by first-boot data, two in warm ones by SSH, and nothing is left', {
  timeout: 900_000,
}, async () => {
  const folder = await makeFolder()
  const stop = new AbortController()
  using _ = { [Symbol.dispose]: () => stop.abort() }
  await using github = await GitHubStandIn.start({ pollMs: 1_000 })
  await seedTiny(path.join(folder, 'images'), ['amd64'])
  await using server = await startDev(folder)
  const env = { SVC3_API_URL: server.apiUrl, SVC3_TOKEN: server.token }
  const ok = async (line: string, input = ''): Promise<string> => {
    const { code, stdout, stderr } = await svc3(line.split(' '), { env, input, timeoutMs: 300_000 })
    assert.equal(code, 0, `${line}: ${stdout}${stderr}`)
    return stdout
  }
  // First-boot scripts run as root; people who log in do not.
  const script = path.join(folder, 'stub.sh')
  await fs.writeFile(script, stub)
  await ok(`vm deploy base -i tiny-amd64 --cpu 1 --memory 0.5 --userdata ${script}`)
  await eventually(async () => {
    const look = [
      'vm',
      'ssh',
      'base',
      '--password-stdin',
      '--',
      'test -x /opt/actions-runner/run.sh && ! test -e /var/lib/svc3/first-boot',
    ]
    const { code, stderr } = await svc3(look, { env, input: 'admin\n', timeoutMs: 60_000 })
    assert.equal(code, 0, stderr)
  }, 300_000)
  await ok('vm save base runner')
  await ok('vm delete base --yes')
  await ok('vm-config create ci --image runner --cpu 1 --memory 0.5')
  await ok(`runner-pool create ci --url ${github.url} --config ci --token-stdin --max 2 --idle-for 10s`, 'ghp_standin')
  const boots: string[] = []
  const bridging = bridge(github, folder, boots, stop.signal)
  const vmsNow = async (): Promise<unknown[]> => (await server.call('GET', `${space}/vms`)).body.items as unknown[]
  const done = (jobs: typeof github.jobs): Promise<void> =>
    eventually(async () => {
      assert.deepEqual([...new Set(jobs.map(({ state }) => state))], ['completed'])
      assert.deepEqual(await vmsNow(), [])
      assert.equal(github.runners.size, 0)
    }, 400_000)
  const count = isAllTested ? 10 : 4
  const jobs = Array.from({ length: count }, () => github.queueJob())
  await done(jobs)
  assert.equal(new Set(jobs.flatMap(({ ranOn }) => ranOn)).size, count)
  assert.ok(boots.length >= count)
  assert.ok(github.maxOnline <= 2, `${github.maxOnline} runners at once`)

  await ok('runner-pool delete ci --yes')
  await fs.writeFile(path.join(folder, 'guest.txt'), 'admin\n')
  const login = `--ssh-user admin --ssh-password-file ${path.join(folder, 'guest.txt')}`
  await ok('pool create warm --config ci --min-idle 2 --max-idle 2')
  const warm = async () => (await server.call('GET', `${space}/pools/warm`)).body
  await eventually(async () => assert.equal((await warm()).ready, 2), 300_000)
  await ok(`runner-pool create ssh --url ${github.url} --config ci --token-stdin --max 2 ${login}`, 'ghp_standin')
  const later = [github.queueJob(), github.queueJob()]
  await done(later)
  assert.equal((await warm()).hits, 2)
  stop.abort()
  await bridging
  assert.deepEqual(github.violations, [])
  assert.deepEqual(
    later.map(({ ranOn }) => ranOn.length),
    [1, 1],
  )
  assert.equal(new Set(boots).size, boots.length)
  // Warm VMs outlive the service.
  await ok('pool delete warm --yes')
  await eventually(async () => {
    const left: string[] = []
    for await (const vm of fs.glob('nodes/*/vms/*', { cwd: folder })) left.push(vm)
    assert.deepEqual(left, [])
  }, 60_000)
  await server.kill('SIGTERM')
  await fs.rm(folder, { recursive: true, force: true })
})
