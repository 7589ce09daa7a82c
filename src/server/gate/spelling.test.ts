// Both spellings of a namespace in answers, lists, watches, events and refusals.
import assert from 'node:assert/strict'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { after, before, describe, it } from 'node:test'
import WebSocket from 'ws'
import { startService, type TestService } from '../../../test/support/rigs/service.ts'
import { addImage, type NodeStandIn, startNode, startScheduler } from '../../../test/support/stand-ins/node.ts'
import { eventually } from '../../../test/support/tools/eventually.ts'
import { publicAliases } from '../../rules/names.ts'
import { spellingOf } from './spelling.ts'

let service: TestService
let url: string
let scheduler: AsyncDisposable
let node: NodeStandIn
const all = '/api/v1/namespaces'
const [orka, svc] = [`${all}/orka-doc1`, `${all}/svc-doc1`]
before(async () => {
  service = await startService()
  url = await service.listen()
  scheduler = startScheduler(service)
  await addImage(service, 'sonoma', 'amd64')
  const made = await service.call('POST', all, { body: { name: 'orka-doc1' } })
  assert.deepEqual([made.status, made.body.name], [201, 'orka-doc1'])
  await service.call('POST', all, { body: { name: 'svc-doc2' } })
  node = await startNode(service, { name: 'one' })
  const moved = await service.call('POST', `${all}/svc-default/nodes/one/namespace`, {
    body: { namespace: 'svc-doc1' },
  })
  assert.deepEqual([moved.status, moved.body.namespace], [200, 'svc-doc1'], moved.text)
})
after(async () => {
  await scheduler[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

const get = async (path: string, token?: string) =>
  (await service.call('GET', path, token === undefined ? {} : { token })).body
const namesIn = async (path: string): Promise<string[]> =>
  (await get(path)).items.map(({ name }: { name: string }) => name)

describe('spelling', () => {
  it('spelling: a list of namespaces has each as it was created, a single one as requested', async () => {
    assert.deepEqual(await namesIn(all), ['svc-default', 'orka-doc1', 'svc-doc2'])
    for (const name of ['orka-doc1', 'svc-doc1', 'orka-doc2', 'svc-doc2', 'orka-default', 'svc-default'])
      assert.equal((await get(`${all}/${name}`)).name, name)
    for (const selector of ['name=orka-doc1', 'name==svc-doc1'])
      assert.deepEqual(await namesIn(`${all}?fieldSelector=${selector}`), ['orka-doc1'])
  })

  it('spelling of the default namespace is that of Orka for the command line called as orka3', async () => {
    const names = async (agent: string) => {
      const { body } = await service.call('GET', all, { headers: { 'user-agent': agent } })
      return body.items.map(({ name }: { name: string }) => name)
    }
    assert.deepEqual(await names('orka3-cli'), ['orka-default', 'orka-doc1', 'svc-doc2'])
    assert.deepEqual(await names('svc3-cli'), ['svc-default', 'orka-doc1', 'svc-doc2'])
  })

  it('spelling: developers see their namespaces, in whichever spelling these were created', async () => {
    const body = { users: ['dora@example.com'] }
    await service.call('POST', `${orka}/rolebindings/orka-dev/subjects/add`, { body })
    const token = await service.tokenFor({ kind: 'user', name: 'dora@example.com', admin: false })
    const { items } = await get(all, token)
    assert.ok(items.some(({ name }: { name: string }) => name === 'orka-doc1'))
    assert.ok(!items.some(({ name }: { name: string }) => name === 'svc-doc2'))
  })

  it('spelling: creating a namespace again answers in the spelling of the request, and changes nothing', async () => {
    for (const name of ['svc-doc1', 'orka-doc1']) {
      const again = await service.call('POST', all, { body: { name } })
      assert.deepEqual(
        [again.status, again.body.message, again.body.details],
        [409, `Namespace ${name} already exists`, { name, kind: 'namespaces' }],
      )
    }
    assert.ok((await namesIn(all)).includes('orka-doc1'))
  })

  it('spelling of a VM, its configuration, its node and its image is that of the path', async () => {
    const labels = { namespace: 'svc-doc1', team: 'svc-doc1' }
    for (const [here, namespace, name] of [
      [orka, 'orka-doc1', 'demo'],
      [svc, 'svc-doc1', 'svc-doc1'],
    ] as const) {
      const deployed = await service.call('POST', `${here}/vms`, { body: { image: 'sonoma', name, labels } })
      assert.deepEqual([deployed.status, deployed.body.namespace], [201, namespace], deployed.text)
      const config = await service.call('POST', `${here}/vmconfigs`, { body: { image: 'sonoma', name: `c-${name}` } })
      assert.equal(config.body.namespace, namespace)
    }
    for (const [here, namespace] of [
      [orka, 'orka-doc1'],
      [svc, 'svc-doc1'],
    ] as const) {
      const { items } = await get(`${here}/vms`)
      assert.deepEqual(
        items.map((vm: Record<string, unknown>) => [vm.namespace, vm.name, vm.labels]),
        [
          [namespace, 'demo', labels],
          [namespace, 'svc-doc1', labels],
        ],
      )
      const [there] = (await get(`${here}/nodes`)).items
      assert.deepEqual(
        [there.namespace, there.vms.toSorted()],
        [namespace, [`${namespace}/demo`, `${namespace}/svc-doc1`]],
      )
      assert.deepEqual((await get(`${here}/images/sonoma`)).usedBy.toSorted(), [
        `${namespace}/demo`,
        `${namespace}/svc-doc1`,
      ])
    }
    // From another namespace, as it was created.
    assert.deepEqual((await get(`${all}/svc-doc2/images/sonoma`)).usedBy.toSorted(), [
      'orka-doc1/demo',
      'orka-doc1/svc-doc1',
    ])
  })

  it('spelling of an image that is saved without a description', async () => {
    const saved = await service.call('POST', `${orka}/vms/demo/save`, { body: { imageName: 'kept' } })
    const said = (namespace: string) => `Saved from VM demo in namespace ${namespace}.`
    assert.deepEqual([saved.body.description, saved.body.sourceNamespace], [said('orka-doc1'), 'orka-doc1'], saved.text)
    assert.equal((await get(`${svc}/images/kept`)).description, said('svc-doc1'))
    for (const name of ['orka-doc1', 'svc-doc1'])
      assert.deepEqual(await namesIn(`${orka}/images?fieldSelector=sourceNamespace=${name}`), ['kept'])
    const own = { imageName: 'own', description: 'Made in svc-doc1' }
    assert.equal((await service.call('POST', `${orka}/vms/demo/save`, { body: own })).body.description, own.description)
  })

  it('spelling of refusals and of successes without a record', async () => {
    for (const [here, namespace] of [
      [orka, 'orka-doc1'],
      [svc, 'svc-doc1'],
    ] as const) {
      const missing = await service.call('GET', `${here}/vms/foo`)
      assert.deepEqual(
        [missing.status, missing.body.message, missing.body.hint],
        [404, `VM foo not found in ${namespace}`, `Run svc3 vm list -n ${namespace} to see all VMs`],
      )
      const forbidden = await service.call('GET', `${here}/vms`, { token: service.devToken })
      assert.equal(
        forbidden.body.hint,
        `Ask an administrator for access to ${namespace}: svc3 rolebinding add-subject --user EMAIL -n ${namespace}`,
      )
      const config = `c-${namespace === 'orka-doc1' ? 'demo' : 'svc-doc1'}`
      const deleted = await service.call('DELETE', `${here}/vmconfigs/${config}`)
      assert.equal(deleted.body.message, `VM configuration ${config} deleted from ${namespace}`)
      const full = await service.call('DELETE', here)
      assert.match(full.body.message, new RegExp(`^Namespace ${namespace} is not empty: `))
    }
    const none = await service.call('GET', `${all}/orka-none`)
    assert.deepEqual([none.body.message, none.body.details.name], ['Namespace orka-none not found', 'orka-none'])
    // The name of a VM is not changed, even if it looks like a namespace.
    const again = await service.call('POST', `${orka}/vms`, { body: { image: 'sonoma', name: 'svc-doc1' } })
    assert.equal(again.body.message, 'VM svc-doc1 already exists in orka-doc1')
  })

  it('spelling of service accounts, their tokens and role bindings; a token is valid for both spellings', async () => {
    const made = await service.call('POST', `${orka}/serviceaccounts/ci`)
    assert.equal(made.body.namespace, 'orka-doc1')
    const { token } = (await service.call('POST', `${orka}/serviceaccounts/ci/token`, { body: {} })).body
    for (const here of [orka, svc]) assert.equal((await service.call('GET', `${here}/vms`, { token })).status, 200)
    const body = { serviceaccounts: [{ name: 'ci', namespace: 'orka-doc1' }] }
    const bound = await service.call('POST', `${all}/svc-doc2/rolebindings/svc-dev/subjects/add`, { body })
    assert.deepEqual(
      bound.body.items.at(-1),
      { kind: 'ServiceAccount', name: 'ci', namespace: 'orka-doc1' },
      bound.text,
    )
    const { items } = await get(`${orka}/serviceaccounts`)
    assert.equal(items[0].namespace, 'orka-doc1')
  })

  it('spelling of a namespace that a body names is that of the body', async () => {
    const back = await service.call('POST', `${all}/svc-doc2/rolebindings/svc-dev/subjects/add`, {
      body: { serviceaccounts: [{ name: 'none', namespace: 'orka-default' }] },
    })
    assert.match(back.body.message, /Service account none not found in orka-default/)
  })

  it('spelling of events is that of the path, also in selectors', async () => {
    for (const [here, namespace] of [
      [orka, 'orka-doc1'],
      [svc, 'svc-doc1'],
    ] as const) {
      const { items } = await get(`${here}/events`)
      const deleted = items.find(({ reason }: { reason: string }) => reason === 'CreateServiceAccount')
      assert.equal(deleted.involved.name, 'ci')
      const about = `involved.kind=namespaces,involved.name=${namespace}`
      const created = (await get(`${all}/svc-default/events?fieldSelector=${about}`)).items
      assert.match(created[0].message, /^admin@example\.com created namespace orka-doc1$/)
      assert.equal(created[0].involved.name, 'orka-doc1')
    }
    const moved = (await get(`${all}/svc-default/events?fieldSelector=reason=MoveNode`)).items
    assert.match(moved[0].message, /moved node one to orka-doc1$/)
  })

  it('spelling of a watch is that of its path, for all events', async () => {
    const stop = new AbortController()
    const follow = (path: string): string[] => {
      const seen: string[] = []
      const read = async (): Promise<void> => {
        const headers = { authorization: `Bearer ${service.adminToken}` }
        const { body } = await fetch(`${url}${path}?watch=true`, { headers, signal: stop.signal })
        for await (const line of createInterface(Readable.fromWeb(body as never))) {
          const { type, object } = JSON.parse(line)
          if (type !== 'BOOKMARK') seen.push([type, object.namespace, object.name].filter(Boolean).join(' '))
        }
      }
      read().catch((error: unknown) => stop.signal.aborted || assert.fail(String(error)))
      return seen
    }
    const [one, two, names] = [follow(`${orka}/serviceaccounts`), follow(`${svc}/serviceaccounts`), follow(all)]
    const socket = new WebSocket(`${url.replace('http', 'ws')}/api/v1/watch`, {
      headers: { authorization: `Bearer ${service.adminToken}` },
    })
    const messages: { type: string; object: { namespace?: string; message?: string } }[] = []
    socket.on('message', (data) => messages.push(...[JSON.parse(String(data))].flat()))
    await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject))
    socket.send(JSON.stringify({ watch: 1, path: `${orka}/serviceaccounts` }))
    socket.send(JSON.stringify({ watch: 2, path: `${all}/orka-none/vms` }))
    await eventually(() => assert.equal(names.length, 3))
    await eventually(() => assert.ok(one.length > 0 && two.length > 0))
    await service.call('POST', `${orka}/serviceaccounts/late`)
    await service.call('DELETE', `${svc}/serviceaccounts/late`)
    await service.call('POST', all, { body: { name: 'orka-late' } })
    await service.call('DELETE', `${all}/svc-late`)
    await eventually(() => {
      for (const [seen, namespace] of [
        [one, 'orka-doc1'],
        [two, 'svc-doc1'],
      ] as const)
        assert.deepEqual(
          seen,
          ['ADDED', 'ADDED', 'DELETED'].map((type, index) => `${type} ${namespace} ${['ci', 'late', 'late'][index]}`),
        )
      assert.deepEqual(names.slice(0, 3), ['ADDED svc-default', 'ADDED orka-doc1', 'ADDED svc-doc2'])
      assert.deepEqual([names[3], names.at(-1)], ['ADDED orka-late', 'DELETED orka-late'])
      const shown = messages.filter(({ type }) => type !== 'BOOKMARK' && type !== 'ERROR')
      assert.deepEqual([...new Set(shown.map(({ object }) => object.namespace))], ['orka-doc1'])
      const refused = messages.find(({ type }) => type === 'ERROR')
      assert.equal(refused?.object.message, 'Namespace orka-none not found')
    })
    stop.abort()
    socket.terminate()
  })

  it('agents get the real names of namespaces', async () => {
    const vms = node.told.flatMap((message) => (message.type === 'VM' ? [message.vm] : []))
    assert.deepEqual([...new Set(vms.map(({ namespace }) => namespace))], ['svc-doc1'])
    const body = { ...service.services.collections.nodes.get('', 'one')?.value.report }
    const answer = await service.call('POST', '/api/v1/agent/node', { token: node.token, body })
    assert.deepEqual([answer.status, answer.text.includes('orka-')], [200, false], answer.text)
  })
})

describe('spelling of texts', () => {
  const spell = spellingOf(
    {
      collections: { namespaces: { view: { revOf: () => '1', range: () => [] } } } as never,
      settings: { compat: { namespaceAliases: publicAliases } },
    },
    ['orka-ci', 'not "a" name'],
  )
  const cases: Readonly<Record<string, readonly [unknown, unknown]>> = {
    'at the end of a sentence': [{ message: 'Nothing in svc-ci.' }, { message: 'Nothing in orka-ci.' }],
    'on a line of its own': [{ warning: 'a\nsvc-ci: b' }, { warning: 'a\norka-ci: b' }],
    'in a path': [{ hint: 'See /api/v1/namespaces/svc-ci/vms' }, { hint: 'See /api/v1/namespaces/orka-ci/vms' }],
    'where a VM is': [{ message: 'VM svc-ci/svc-ci runs' }, { message: 'VM orka-ci/svc-ci runs' }],
    'not in longer names': [
      { message: 'svc-ci-2 my-svc-ci svc-ci.example ghcr.io/svc-ci/x' },
      { message: 'svc-ci-2 my-svc-ci svc-ci.example ghcr.io/svc-ci/x' },
    ],
    'not as the name of a record': [
      { name: 'svc-ci', image: 'svc-ci', message: 'Image svc-ci not found' },
      { name: 'svc-ci', image: 'svc-ci', message: 'Image svc-ci not found' },
    ],
    'not as an account': [
      { owner: 'serviceaccount:svc-ci:bot', message: 'serviceaccount:svc-ci:bot' },
      { owner: 'serviceaccount:svc-ci:bot', message: 'serviceaccount:svc-ci:bot' },
    ],
    'not in texts of users that look like JSON': [
      { description: '"namespace":"svc-ci"', labels: { namespace: 'svc-ci' } },
      { description: '"namespace":"svc-ci"', labels: { namespace: 'svc-ci' } },
    ],
    'with quotes around': [{ message: 'Invalid name "svc-ci"' }, { message: 'Invalid name "orka-ci"' }],
  }
  for (const [what, [given, wanted]] of Object.entries(cases)) {
    it(`spelling of texts: ${what}`, () => assert.deepEqual(JSON.parse(spell(JSON.stringify(given))), wanted))
  }
})
