// Destructive commands ask on a terminal, but not with --yes or in a pipe.
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { type FakeHostOptions, run } from '../../test/support/rigs/cli-host.ts'
import { type FakeService, recordOf, startFakeService } from '../../test/support/stand-ins/api.ts'
import { type Asked, nodeOf, serve, vmOf, changes as watched } from '../../test/support/stand-ins/fleet.ts'
import { success } from '../api/errors.ts'
import { namesText } from './confirm.ts'

let service: FakeService
before(async () => {
  service = await startFakeService()
})
after(() => service[Symbol.asyncDispose]())
let changed: string[]
beforeEach(() => {
  changed = []
  const changes =
    <T>(answer: T) =>
    ({ path }: Asked): T => {
      changed.push(path)
      return answer
    }
  const done = changes(success('done', { kind: 'x', name: 'x' }))
  const vm = vmOf({ name: 'demo' })
  const node = nodeOf({ name: 'mac-1', vms: ['svc-default/demo'] })
  serve(service, {
    'GET vms': () => ({ items: [vm, vmOf({ name: 'ci-1' })] }),
    'GET vms/demo': () => vm,
    'WATCH vms': watched(),
    'GET images/sonoma': () => ({ name: 'sonoma', protected: true }),
    'GET images/own': () => ({ name: 'own', protected: false }),
    'GET vms/own': () => vmOf({ name: 'own', image: 'own' }),
    'GET vms/pulled': () => vmOf({ name: 'pulled', image: 'ghcr.io/team/x:v1' }),
    'GET nodes': () => ({ items: [node] }),
    'GET serviceaccounts': () => ({ items: [{ name: 'jenkins' }] }),
    'GET secrets/registrycredentials': () => ({ items: [recordOf({ server: 'https://ghcr.io', username: 'x' })] }),
    'GET vmconfigs': () => ({ items: [{ name: 'ios-build' }] }),
    'GET pools': () => ({ items: [{ name: 'ci', config: 'ios-build' }] }),
    'GET runnerpools': () => ({ items: [{ name: 'mac', config: 'ios-build' }] }),
    'DELETE vms/demo': done,
    'DELETE vms/ci-1': done,
    'DELETE images/sonoma': done,
    'DELETE isos/ventura.iso': done,
    'DELETE nodes/mac-1': done,
    'DELETE ': done,
    'DELETE serviceaccounts/jenkins': done,
    'DELETE vmconfigs/ios-build': done,
    'DELETE vmconfigs/plain': done,
    'DELETE secrets/registrycredentials/remove': done,
    'POST vms/demo/exec': changes(vm),
    'POST vms/demo/extend': changes(vm),
    'POST vms/demo/commit': changes({ name: 'sonoma' }),
    'POST vms/own/commit': changes({ name: 'own' }),
    'POST vms/pulled/commit': changes({ name: 'x' }),
    'POST nodes/mac-1/drain': changes({ ...node, vms: [] }),
  })
})

const svc3 = (line: string, options: FakeHostOptions = {}) =>
  run(line.split(' '), { ...options, env: { SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.token } })
const terminal = { stdin: true, stdout: true }

const questions: Readonly<Record<string, string>> = {
  'vm delete demo': 'Delete VM demo in svc-default with its disk?',
  'vm delete demo ci-1': 'Delete VMs demo and ci-1 in svc-default with their disks?',
  'vm delete --label team=ios': 'Delete VMs demo and ci-1 in svc-default with their disks?',
  'vm revert demo': 'Revert VM demo to its image? All changes on its disk are lost.',
  'vm extend demo 2h': 'VM demo has no time limit. Delete it with its disk in 2h?',
  'vm commit demo': 'Image sonoma is protected. Commit VM demo to it?',
  'image delete sonoma': 'Delete image sonoma from the cluster?',
  'iso delete ventura.iso': 'Delete ISO ventura.iso from the cluster?',
  'node delete mac-1': 'Remove node mac-1 from the cluster? It needs a join token to come back.',
  'node drain mac-1 --delete-vms': 'Delete VM svc-default/demo on node mac-1, with all disks?',
  'namespace delete svc-ios':
    'Delete namespace svc-ios? This also deletes service account jenkins, credentials for https://ghcr.io, VM configuration ios-build.',
  'serviceaccount delete jenkins': 'Delete service account jenkins in svc-default? Its tokens stop working.',
  'vm-config delete ios-build':
    'Delete VM configuration ios-build in svc-default? There will be no more VMs for pool ci, runner pool mac.',
  'vm-config delete plain': 'Delete VM configuration plain in svc-default?',
  'regcred remove https://ghcr.io': 'Remove the credentials for https://ghcr.io from svc-default?',
}

describe('destructive commands', () => {
  for (const [line, question] of Object.entries(questions))
    it(`svc3 ${line} asks on a terminal what is lost, and changes nothing unless the answer is yes`, async () => {
      const no = await svc3(line, { terminal, input: '\n' })
      assert.deepEqual([no.exitCode, no.stdout, changed], [1, '', []])
      assert.ok(no.stderr.startsWith(`${question} [y/N] svc3: `), no.stderr)
      assert.match(no.stderr, /\[y\/N\] svc3: .*\n$/)
      const unclear = await svc3(line, { terminal, input: 'sure\n' })
      assert.deepEqual([unclear.exitCode, changed], [1, []])
      assert.match(unclear.stderr, /\nsvc3: Answer y, or add --yes to skip the question\n$/)
      const yes = await svc3(line, { terminal, input: 'y\n' })
      assert.equal(yes.exitCode, 0, yes.stderr)
      const changes = changed.length
      assert.ok(changes > 0)
      for (const [words, options] of [
        [line, {}],
        [`${line} --yes`, { terminal }],
        [`${line} -y`, { terminal }],
      ] as const) {
        changed = []
        const { exitCode, stderr } = await svc3(words, options)
        assert.deepEqual([exitCode, changed.length], [0, changes], words)
        assert.ok(!stderr.includes('[y/N]'), words)
      }
    })

  it('vm commit says before the question that memory will not be saved', async () => {
    const memorySave = { saved: false, reason: 'an ISO is in its drive' }
    serve(service, {
      'GET vms/demo': () => ({ ...vmOf({ name: 'demo' }), memorySave }),
      'GET images/sonoma': () => ({ protected: true }),
    })
    const { stderr } = await svc3('vm commit demo', { terminal, input: '\n' })
    assert.match(
      stderr,
      /^The memory of VM demo will not be saved: an ISO .* its disk\. Image sonoma is protected\. Commit/,
    )
  })

  it('vm extend, vm commit and node drain ask nothing when nothing is lost', async () => {
    for (const line of ['vm extend demo 0', 'vm commit own', 'vm commit pulled', 'node drain mac-1'])
      assert.doesNotMatch((await svc3(line, { terminal })).stderr, /y\/N/)
  })

  it('vm delete --label says so when no VM has the label, and takes no names besides', async () => {
    serve(service, { 'GET vms': () => ({ items: [] }) })
    const none = await svc3('vm delete --label team=tv', { terminal })
    assert.deepEqual([none.exitCode, none.stderr], [0, 'svc3: No VMs with label team=tv in svc-default\n'])
    for (const line of ['vm delete', 'vm delete demo --label team=tv']) assert.equal((await svc3(line)).exitCode, 2)
  })

  it('names are listed as a sentence, and many are counted', () => {
    const many = Array.from({ length: 25 }, (_, index) => `v${index}`)
    assert.equal(namesText(['VM', 'VMs'], ['a', 'b', 'c']), 'VMs a, b and c')
    assert.match(namesText(['VM', 'VMs'], many), /^VMs v0, .*, v19 and 5 more$/)
  })
})
