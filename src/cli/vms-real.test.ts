// The vm and node commands against the real API, on a node that reports success for everything.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { run } from '../../test/support/rigs/cli-host.ts'
import { startService, type TestService } from '../../test/support/rigs/service.ts'
import { addImage, startNode, startScheduler } from '../../test/support/stand-ins/node.ts'

let service: TestService
let scheduler: AsyncDisposable
before(async () => {
  service = await startService()
  scheduler = startScheduler(service)
  await addImage(service, 'intel', 'amd64')
  await addImage(service, 'silicon', 'arm64')
  await startNode(service, { name: 'xeon-1' })
  await service.listen()
})
after(async () => {
  await scheduler[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

const svc3 = (line: string, token = service.adminToken) =>
  run(line.split(' '), { env: { SVC3_API_URL: service.apiUrl, SVC3_TOKEN: token } })

/** Each line: the command, its exit code, its output and its notes. */
const steps: readonly (readonly [string, number, RegExp, RegExp?])[] = [
  ['image list intel', 0, /^NAME\tDESCRIPTION\tSIZE\tTYPE\tSTATE\nintel\t/],
  ['node list', 0, /\nxeon-1\t8\t16\.00G\tREADY\n$/],
  ['vm list', 0, /^NAME\tIP\tSSH\tVNC\tSCREENSHARE\tSTATUS\n$/],
  [
    'vm deploy demo -i intel --label team=ios',
    0,
    /\ndemo\t127\.0\.0\.1\t8822\t5999\t5900\tRunning\n$/,
    /^Waiting for VM demo to be deployed\.\n/,
  ],
  ['vm deploy demo -i intel -o json', 6, /^$/, /VM demo already exists in svc-default/],
  ['vm deploy other -i nothing --quiet', 5, /^$/, /Image nothing not found/],
  ['vm deploy -i intel -c 1 -o json', 0, /"name": "vm-[a-z0-9]{5}"/],
  ['vm deploy ci --generate-name -i intel -c 1 -o json', 0, /"name": "ci-[a-z0-9]{5}"/],
  ['vm list demo -o wide', 0, /\tintel\t3\t\d+\.\d\dGi\txeon-1\tamd64\trunning\tadmin@example\.com\t/],
  ['vm list --label team=ios', 0, /^NAME.*\ndemo\t.*\n$/],
  ['vm list --owner me -o json', 0, /"name": "demo"/],
  ['vm stop demo', 0, /^VM demo is stopped/],
  ['vm list demo -o wide', 0, /\tRunning\t.*\tstopped\t/],
  ['vm stop demo', 6, /^$/, /VM demo is already stopped/],
  ['vm start demo', 0, /^VM demo started/],
  ['vm suspend demo', 0, /^VM demo is suspended/],
  ['vm resume demo', 0, /^VM demo resumed/],
  ['vm revert demo', 0, /^VM demo reverted/],
  ['vm resize demo 120', 0, /^The disk of VM demo is now 120 GiB\.\n$/, /growpart/],
  ['vm resize demo 100', 2, /^$/, /already 120 GiB; choose a larger size/],
  ['vm extend demo 2h --yes', 0, /^VM demo will be deleted at 2026-11-15T11:00:00Z\.\n$/],
  ['vm extend demo 0', 0, /^VM demo has no time limit/],
  ['vm deploy big -i intel -c 64 --no-wait', 2, /^$/, /No node can hold 64 cores; the largest has 8 cores and 16 GiB/],
  ['vm deploy big -i intel -c 8 --no-wait', 0, /\nbig\t\t\t\t\tPending\n$/],
  ['vm-config create small -i intel -c 1 -m 0.5', 0, /^VM configuration small created/],
  ['vmc list small', 0, /\nsmall\tintel\t1\t0\.5\n$/],
  ['vm deploy tiny --config small --quiet', 0, /\ntiny\t127\.0\.0\.1\t/],
  [
    'vm-config delete small none',
    5,
    /^Successfully deleted vm config small\n$/,
    /VM configuration none not found in svc-default/,
  ],
  ['node tag xeon-1 ios', 0, /Tag ios added/],
  ['node list -o wide', 0, /\tios\t/],
  ['node untag xeon-1 ios', 0, /Tag ios removed/],
  ['node cordon xeon-1', 0, /cordoned/],
  ['node list', 0, /READY,CORDONED/],
  ['node uncordon xeon-1', 0, /uncordoned/],
  ['node namespace xeon-1 svc-nowhere', 5, /^$/, /not found/],
  ['node delete xeon-1', 6, /^$/, /xeon-1/],
  ['node join-token --duration 1h', 0, /^svc3-join-1-[\w-]+\n$/],
  ['vm delete demo nobody', 5, /^Successfully deleted vm demo\n$/, /VM nobody not found in svc-default/],
  [
    'events --for vm/demo',
    0,
    /DeployVm\tvms\/demo\t[\s\S]*DeleteVm\tvms\/demo\t/,
    /^svc3: All events since \S+Z are kept\n$/,
  ],
  ['node drain xeon-1 --delete-vms --wait', 0, /drained\.\n$/, /^(svc3: node xeon-1: .*\n)*$/],
  ['node delete xeon-1', 0, /removed from the cluster/],
]

describe('VM and node commands', () => {
  for (const [line, exitCode, stdout, stderr = /^(svc3: VM \w+: .*\n)*$/] of steps) {
    it(`svc3 ${line}: exit ${exitCode}`, async () => {
      const ran = await svc3(line)
      assert.equal(ran.exitCode, exitCode, ran.stderr)
      assert.match(ran.stdout, stdout)
      assert.match(ran.stderr, stderr)
    })
  }

  it('vm deploy and vm list show why a VM waits, meanwhile and afterwards', async () => {
    const controller = new AbortController()
    const env = { SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.adminToken }
    const { exitCode, stderr } = await run(['vm', 'deploy', 'waits', '-i', 'silicon'], {
      env,
      interruption: controller.signal,
      onWrite: ({ stderr }) => stderr.includes('waiting for a node: ') && controller.abort(),
    })
    assert.equal(exitCode, 130)
    assert.match(
      stderr,
      /VM waits: waiting for a node: .+\n(.*\n)*svc3: Stopped waiting; the deploy continues\nsvc3: The VM is deleted unless .* now: svc3 vm delete waits/,
    )
    const list = await svc3('vm list waits')
    assert.match(list.stdout, /\nwaits\t\t\t\t\tPending\n$/)
    assert.match(list.stderr, /^svc3: VM waits is pending: .+\n$/)
  })

  it('commands about nodes exit 4 for developers and 3 with a bad token', async () => {
    assert.equal((await svc3('node join-token', service.devToken)).exitCode, 4)
    assert.equal((await svc3('vm list', 'nonsense')).exitCode, 3)
  })
})
