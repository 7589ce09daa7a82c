// Hints that are added to errors: a similar name, and versions that do not match.
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { run } from '../../test/support/rigs/cli-host.ts'
import { type FakeService, send, startFakeService } from '../../test/support/stand-ins/api.ts'
import { serve, vmOf } from '../../test/support/stand-ins/fleet.ts'
import { type Patience, withoutLimit } from '../../test/support/tools/patience.ts'
import { ApiError, notFound } from '../api/errors.ts'
import { explainTimeoutMs } from './explain.ts'
import { nearestName } from './line/suggest.ts'

let service: FakeService
let patience: Patience
before(async () => {
  service = await startFakeService()
  patience = withoutLimit(explainTimeoutMs)
})
after(async () => {
  patience.end()
  await service[Symbol.asyncDispose]()
})
const svc3 = (line: string) =>
  run(line.split(' '), { env: { SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.token } })

describe('unknown names', () => {
  const missing = (kind: string, name: string) => () => {
    throw notFound(kind, name)
  }
  beforeEach(() =>
    serve(service, {
      'GET vms': () => ({ items: [vmOf({ name: 'demo' }), vmOf({ name: 'builder-12' })] }),
      'GET vms/dmeo': missing('vms', 'dmeo'),
      'DELETE vms/dmeo': missing('vms', 'dmeo'),
      'DELETE vms/x': missing('vms', 'x'),
      'POST vms': missing('images', 'sonma'),
      'GET images': () => ({ items: [{ name: 'sonoma' }] }),
    }),
  )
  const cases = {
    'vm ssh dmeo': 'demo',
    'vm delete dmeo': 'demo',
    'vm list dmeo': 'demo',
    'vm deploy x -i sonma --no-wait': 'sonoma',
  }
  for (const [line, meant] of Object.entries(cases))
    it(`an unknown name in "${line}" suggests ${meant}`, async () => {
      const { exitCode, stderr } = await svc3(line)
      assert.equal(exitCode, 5)
      const pattern = new RegExp(`not found.*\\nsvc3: Did you mean ${meant}\\? Run .* list.* to see all .*\\n$`)
      assert.match(stderr, pattern)
    })

  it('several unknown names are each reported, without a suggestion', async () => {
    const { exitCode, stderr } = await svc3('vm delete dmeo x')
    assert.equal(exitCode, 5)
    assert.ok(!stderr.includes('did you mean'))
  })

  it('an unknown name is reported without a suggestion when the service does not list in time', async () => {
    service.override = (request, response) => {
      if (request.path.endsWith('/dmeo'))
        send(response, 404, notFound('vms', 'dmeo', { hint: 'List them' }).toStatus('r'))
    }
    patience.end()
    const { stderr } = await svc3('vm ssh dmeo')
    patience = withoutLimit(explainTimeoutMs)
    assert.equal(stderr, 'svc3: VM dmeo not found\nsvc3: List them\n')
  })
})

describe('nearestName', () => {
  const names = ['demo', 'builder-12', 'https://ghcr.io', 'svc-ios', 'tiny-amd64', 'tiny-arm64']
  const cases: Readonly<Record<string, string | undefined>> = {
    dmeo: 'demo',
    'tiny-amd46': 'tiny-amd64',
    dem: 'demo',
    'builder-13': undefined,
    'bulider-12': 'builder-12',
    'https://quay.io': undefined,
    'https://ghrc.io': 'https://ghcr.io',
    'svc-tv': undefined,
    d: undefined,
  }
  for (const [name, wanted] of Object.entries(cases))
    it(`nearestName of ${name} is ${wanted}`, () => assert.equal(nearestName(name, names), wanted))
})

describe('version skew', () => {
  const serveVersion = (version: string, refusal: ApiError): void => {
    service.override = (request, response) => {
      if (request.path === '/api/v1/cluster-info') return send(response, 200, { version })
      return send(response, refusal.code, refusal.toStatus('r'))
    }
  }
  const unknownPath = new ApiError('NotFound', 'Path not found', { hint: 'See the API' })

  it('versions that do not match are named when the server does not know the request', async () => {
    serveVersion('2.9.0', unknownPath)
    const { stderr } = await svc3('vm list')
    assert.match(stderr, /\nsvc3: This program is version 3\.0\.0-here, the server is 2\.9\.0\. Use the program/)
  })

  it('versions are not mentioned when they match', async () => {
    serveVersion('3.0.0', unknownPath)
    assert.match((await svc3('vm list')).stderr, /\nsvc3: See the API\n$/)
  })

  it('"version" notes that client and server do not match', async () => {
    serveVersion('4.0.0', unknownPath)
    const { exitCode, stdout, stderr } = await svc3('version')
    assert.deepEqual([exitCode, stdout], [0, 'client 3.0.0-here\nserver 4.0.0\n'])
    assert.match(stderr, /This program is version .*, the server is /)
    assert.equal((await svc3('version -o json')).stderr, '')
  })
})
