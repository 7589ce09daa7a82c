// Errors of the service in terms of the command line, and the exit codes that scripts rely on.
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { type FakeHostOptions, run } from '../../test/support/rigs/cli-host.ts'
import { type FakeService, startFakeService } from '../../test/support/stand-ins/api.ts'
import { change, changes, nodeOf, serve, vmOf } from '../../test/support/stand-ins/fleet.ts'
import { ApiError, invalid, notFound } from '../api/errors.ts'

let service: FakeService
before(async () => {
  service = await startFakeService()
})
after(() => service[Symbol.asyncDispose]())
beforeEach(() => {
  service.requests.length = 0
})
const svc3 = (line: string, onWrite: NonNullable<FakeHostOptions['onWrite']> = () => undefined) =>
  run(line.split(' '), { env: { SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.token }, onWrite })
const refuse = (route: string, error: ApiError): void =>
  serve(service, {
    [route]: () => {
      throw error
    },
  })
const fault = (field: string, message: string, reason = 'FieldValueInvalid') => ({ field, reason, message })
const hint = 'correct the fields named in details.causes'

describe('refusal with causes', () => {
  it('a refusal with causes names options in place of fields, and shows the usage', async () => {
    const causes = [
      fault('systemSerial', 'systemSerial may have letters only'),
      fault('gpuPassthrough', 'gpuPassthrough needs a node with a GPU'),
      fault('strange', 'strange must be a string'),
    ]
    refuse('POST vms', invalid('vms', causes, hint))
    const { exitCode, stderr } = await svc3('vm deploy demo -i sonoma --no-wait')
    assert.equal(exitCode, 2)
    assert.equal(
      stderr.split('\n').slice(-3).join('\n'),
      'svc3: --system-serial may have letters only; --gpu needs a node with a GPU; strange must be a string\n' +
        'svc3: Usage: svc3 vm deploy [NAME] [OPTIONS]\n',
    )
  })

  it('a refusal with causes keeps a message that is more than its causes, and a hint that fits', async () => {
    const options = { causes: [fault('image', 'image is required')], hint: 'svc3 image list shows them' }
    refuse('POST vms', new ApiError('BadRequest', 'neither image nor config', options))
    const { stderr } = await svc3('vm deploy demo -i sonoma --no-wait')
    assert.match(stderr, /svc3: neither image nor config\nsvc3: svc3 image list shows them\n$/)
  })

  it('a refusal only about what does not exist exits 5', async () => {
    const missing = fault('serviceaccounts.0', 'Service account jk not found in svc-ios', 'FieldValueNotFound')
    const wrong = fault('users.0', '"x" is not an email address')
    refuse('POST rolebindings/svc-dev/subjects/add', invalid('rolebindings', [missing], hint))
    const line = 'rb add-subject -s svc-default:jk'
    const { exitCode, stderr } = await svc3(line)
    assert.deepEqual([exitCode, stderr.includes('not found') && !stderr.includes('details')], [5, true], stderr)
    refuse('POST rolebindings/svc-dev/subjects/add', invalid('rolebindings', [missing, wrong], hint))
    assert.equal((await svc3(line)).exitCode, 2)
  })
})

it('a namespace of a wrong name is wrong usage, with nothing sent', async () => {
  for (const name of ['team', 'svc-', 'svc-A', `svc-${'a'.repeat(60)}`]) {
    const { exitCode, stderr } = await svc3(`ns create ${name}`)
    assert.equal(exitCode, 2, name)
    assert.match(stderr, /Invalid namespace name .*\nsvc3: Start with svc-/)
  }
  assert.equal(service.requests.length, 0)
})

it('the hint of a list and of the service about a missing name are alike', async () => {
  serve(service, {
    'GET vms': () => ({ items: [] }),
    'DELETE vms/nope': () => {
      throw notFound('vms', 'nope', { namespace: 'svc-default' })
    },
  })
  assert.equal((await svc3('vm list nope')).stderr, (await svc3('vm delete nope')).stderr)
})

describe('timeouts', () => {
  const image = { name: 'tiny', state: 'Updating', progress: { percent: 25, bytes: 2 ** 30 } }
  const cases: Readonly<Record<string, string>> = {
    'vm save demo tiny --wait --timeout 7 -n svc-ios': 'To follow it: svc3 image list tiny -n svc-ios',
    'vm commit demo --wait --timeout 7 -n svc-ios': 'To follow it: svc3 image list tiny -n svc-ios',
    'remote-image pull tiny --wait --timeout 7 -n svc-ios': 'To follow it: svc3 image list tiny -n svc-ios',
    'remote-iso pull tiny --wait --timeout 7 -n svc-ios': 'To follow it: svc3 iso list tiny -n svc-ios',
    'ic add tiny --all --wait --timeout 7 -n svc-ios': 'To follow it: svc3 imagecache info tiny -n svc-ios',
  }
  for (const [line, look] of Object.entries(cases))
    it(`${line} that takes too long exits 7, and says how to check again`, async (t) => {
      // The timeout occurs as soon as the progress was shown.
      const step = line.startsWith('ic') ? /svc3: node mini-1: fetching image tiny/ : /tiny: [\w ]+: 1 GiB, /
      const late = new AbortController()
      const timeout = AbortSignal.timeout.bind(AbortSignal)
      t.mock.method(AbortSignal, 'timeout', (ms: number) => (ms > 400_000 ? late.signal : timeout(ms)))
      const accepted = { node: 'mini-1', result: 'Accepted', code: 202, message: 'Fetching' }
      serve(service, {
        'POST vms/demo/save': () => image,
        'POST vms/demo/commit': () => image,
        'POST remoteimages/tiny/pull': () => image,
        'POST remoteisos/tiny/pull': () => image,
        'POST cache/images/tiny/add': () => ({ items: [accepted] }),
        'GET cache/images/tiny': () => ({
          nodes: [{ node: 'mini-1', state: 'Fetching', progress: { percent: 5 }, pinned: true }],
        }),
        'WATCH images': changes(change('ADDED', image)),
        'WATCH isos': changes(change('ADDED', image)),
        'WATCH nodes': changes(change('ADDED', nodeOf({ name: 'mini-1' }))),
        'GET vms/demo': () => vmOf({ name: 'demo' }),
      })
      const { exitCode, stderr } = await svc3(line, ({ stderr }) => {
        if (step.test(stderr)) late.abort(new DOMException('it took too long', 'TimeoutError'))
      })
      assert.equal(exitCode, 7, stderr)
      assert.ok(stderr.endsWith(`${look}\n`), stderr)
    })
})
