// Doors of a developer, who has a role in one namespace.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Answer, type Attacker, frame } from './attacker.ts'
import { attackAll } from './suite.ts'
import { others, startTarget, type Target, team } from './target.ts'

const group = 'orka.macstadium.com/v1'
const configs = ({ kubernetesUrl }: Target, namespace = team): string =>
  `${kubernetesUrl}/apis/${group}/namespaces/${namespace.replace('svc-', 'orka-')}/virtualmachineconfigs`
const rest = ({ apiUrl }: Target, namespace = team): string => `${apiUrl}/api/v1/namespaces/${namespace}`

const configOf = (name: string, metadata: object = {}) => ({
  apiVersion: group,
  kind: 'VirtualMachineConfig',
  metadata: { name, ...metadata },
  spec: { image: 'any', cpu: 2 },
})

const numbered = (count: number, name: (index: number) => string, value: unknown = ''): Record<string, unknown> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [name(index), value]))

const patches = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const

function patch(
  attacker: Attacker,
  target: Target,
  [name, kind, query = '']: readonly [string, keyof typeof patches, string?],
  body: unknown,
): Promise<Answer> {
  const headers = { 'content-type': patches[kind] }
  return attacker.call('PATCH', `${configs(target)}/${name}${query}`, { token: target.tokens.developer, body, headers })
}

/** Creates a VM configuration, for the requests that follow. */
async function make(attacker: Attacker, target: Target, name: string): Promise<void> {
  const { status, text } = await attacker.call('POST', configs(target), {
    token: target.tokens.developer,
    body: configOf(name),
  })
  assert.ok(status === 201 || status === 409, `${status} ${text}`)
}

/** Every way to have the list whole, in both wires. */
async function readAll(attacker: Attacker, target: Target, concurrency: number, namespace = team): Promise<void> {
  const token = namespace === team ? target.tokens.developer : target.tokens.other
  const accepts = ['application/json', 'application/json;as=Table;g=meta.k8s.io;v=v1', 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'] // biome-ignore format: a list
  const lists = [
    ...accepts.map((accept) => ({ url: configs(target, namespace), headers: { accept } })),
    { url: `${configs(target, namespace)}?labelSelector=${'a%21%3Db,'.repeat(300)}a`, headers: {} },
    { url: `${rest(target, namespace)}/vmconfigs`, headers: {} },
    { url: `${rest(target, namespace)}/events`, headers: {} },
  ]
  await attacker.many(lists.length * concurrency, concurrency, async (index) => {
    const { url = '', headers = {} } = lists[Math.floor(index / concurrency)] ?? {}
    const { status, text } = await attacker.call('GET', url, { token, headers })
    // A list that is too large for one answer may be refused, but not lost.
    assert.ok(status === 200 || status === 429, `${url}: ${status} ${text.slice(0, 300)}`)
  })
  const initial =
    '?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=2'
  await attacker.many(concurrency, concurrency, () =>
    attacker.call('GET', `${configs(target, namespace)}${initial}`, { token }),
  )
  const socket = await attacker.upgrade(`${target.apiUrl}/api/v1/watch`, token)
  for (let watch = 0; watch < 20; watch++)
    socket.write(frame(1, JSON.stringify({ watch, path: `/api/v1/namespaces/${namespace}/vmconfigs`, query: {} })))
  await sleep(1_000)
  socket.destroy()
}

/** The same list on many connections, and nothing of it is read. */
async function readNothing(attacker: Attacker, target: Target): Promise<void> {
  const url = new URL(configs(target))
  await attacker.many(40, 20, async () => {
    const socket = await attacker.connect(target.kubernetesUrl)
    attacker.sent++
    const head = `GET ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\nAuthorization: Bearer ${target.tokens.developer}\r\n\r\n`
    await attacker.write(socket, head)
  })
  await sleep(2_000)
}

attackAll<Target>('developers', {
  start: startTarget,
  doors: [
    {
      name: 'developer: 80,000 labels in one object',
      attack: async (attacker, target) => {
        const { developer: token } = target.tokens
        await make(attacker, target, 'labels')
        // The first are refused for the number of their fields, the others for their labels.
        for (const count of [80_000, 14_000]) {
          const metadata = { labels: numbered(count, (index) => `k${index}`) }
          const body = JSON.stringify(configOf('more-labels', metadata))
          assert.ok(body.length < 1_048_576)
          for (let turn = 0; turn < 3; turn++) await attacker.call('POST', configs(target), { token, body })
          for (const kind of ['merge', 'apply'] as const)
            await patch(attacker, target, ['labels', kind, '?fieldManager=a'], configOf('labels', metadata))
          await attacker.call('PUT', `${rest(target)}/metadata/vmconfigs/labels`, { token, body: metadata })
        }
        assert.deepEqual(new Set(attacker.statuses.keys()), new Set([201, 413, 422]))
      },
    },
    {
      name: 'developer: fields that no object has, by the thousand',
      attack: async (attacker, target) => {
        const { developer: token } = target.tokens
        let warnings = 0
        // The first are refused for the number of their fields.
        for (const count of [60_000, 14_000]) {
          const unknown = numbered(count, (index) => `unknown${index}`, 1)
          const twice = `{${'"cpu":1,'.repeat(count)}"image":"any"}`
          const bodies = [JSON.stringify({ ...configOf('unknown'), spec: { image: 'any', ...unknown } }), `{"apiVersion":"${group}","kind":"VirtualMachineConfig","metadata":{"name":"unknown"},"spec":${twice}}`] // biome-ignore format: two bodies
          for (const body of bodies)
            for (const validation of ['Warn', 'Strict', 'Ignore']) {
              const url = `${configs(target)}?dryRun=All&fieldValidation=${validation}`
              const { headers } = await attacker.call('POST', url, { token, body })
              const characters = [headers.warning ?? ''].flat().join().length
              assert.ok(characters < 8_192, `${characters} characters of warnings for one write`)
              if (characters > 0) warnings++
            }
        }
        assert.equal(warnings, 2, 'writes with warnings')
      },
    },
    {
      name: 'developer: managed fields, then conflicting patches at once',
      attack: async (attacker, target) => {
        await make(attacker, target, 'managed')
        const managedFields = Array.from({ length: 64 }, (_, index) => ({
          manager: `m${index}`,
          operation: index < 20 ? 'Apply' : 'Update',
          apiVersion: group,
          time: '2026-11-15T09:00:00Z',
          fieldsType: 'FieldsV1',
          fieldsV1: { 'f:metadata': { 'f:annotations': numbered(1_500, (field) => `f:a${index}-${field}`, {}) } },
        }))
        await patch(attacker, target, ['managed', 'merge'], { metadata: { managedFields } })
        for (let count = 0; count < 10; count++) {
          const part = managedFields.slice(count * 6, count * 6 + 6)
          await patch(attacker, target, ['managed', 'merge'], { metadata: { managedFields: part } })
        }
        await attacker.many(attacker.times(60), 20, (index) =>
          patch(attacker, target, ['managed', 'merge', `?fieldManager=p${index % 7}`], {
            metadata: { annotations: { [`a${index}`]: 'b' } },
          }),
        )
      },
    },
    {
      name: 'developer: patches that copy, test and nest',
      attack: async (attacker, target) => {
        await make(attacker, target, 'bombs')
        const annotations = { large: 'x'.repeat(120_000) }
        await patch(attacker, target, ['bombs', 'merge'], { metadata: { annotations } })
        const steps = (count: number, step: (index: number) => object): string =>
          JSON.stringify(Array.from({ length: count }, (_, index) => step(index)))
        const deep = (open: string, close: string, count = 100_000): string => open.repeat(count) + close.repeat(count)
        const bombs: readonly (readonly [keyof typeof patches, string])[] = [
          ['json', steps(1_000, (index) => ({ op: 'copy', from: '/metadata/annotations', path: `/spec/x${index}` }))],
          ['json', steps(60, (index) => ({ op: 'copy', from: '/metadata', path: `/metadata/x${index}` }))],
          ['json', steps(10_000, () => ({ op: 'test', path: '/metadata/annotations/large', value: 'x' }))],
          ['json', steps(10_000, (index) => ({ op: 'add', path: `/metadata/labels/l${index}`, value: '' }))],
          ['json', steps(900, () => ({ op: 'add', path: `/spec${'/a'.repeat(500)}`, value: 1 }))],
          ['json', deep('[', ']')],
          ['merge', deep('{"a":', '}', 100_000).replace('}', '1}')],
          ['merge', JSON.stringify({ metadata: { finalizers: Array(50_000).fill('a/b') } })],
          ['apply', `a:\n${Array.from({ length: 300 }, (_, index) => `${' '.repeat(index)}b${index}:\n`).join('')}`],
          ['apply', `a: &a [${'1,'.repeat(1_000)}1]\nb: [${'*a,'.repeat(100_000)}*a]\n`],
        ]
        for (let round = 0; round < attacker.times(2); round++)
          for (const [kind, body] of bombs)
            await patch(attacker, target, ['bombs', kind, '?fieldManager=a&force=true'], body)
      },
    },
    {
      name: 'developer: refusals that are kept for their Idempotency-Key',
      attack: async (attacker, target) => {
        const { developer: token } = target.tokens
        const labels = numbered(64, (index) => `-bad ${index}${'x'.repeat(100)}`)
        const refused = { image: 'any', labels, reservedPorts: '1:1:1,'.repeat(300) }
        await attacker.many(attacker.times(2_500), 30, async (index) => {
          const headers = { 'idempotency-key': `${index}-${'k'.repeat(200)}` }
          const { status } = await attacker.call('POST', `${rest(target)}/vms`, { token, body: refused, headers })
          assert.ok([422, 429, 0].includes(status), `answers ${status}`)
        })
      },
      // A caller's share of the answers that are kept is much less than the disk space that a door may take.
      limits: { diskMb: 10 },
    },
    {
      name: 'developer: uploads that are begun and never finished',
      attack: async (attacker, target) => {
        const { developer: token } = target.tokens
        const size = 2 ** 20
        const padding = 'x'.repeat(60_000)
        const accepted: string[] = []
        await attacker.many(attacker.times(400), 20, async (index) => {
          const body = { kind: 'image', name: `u${index}`, size, key: `${index}`, type: 'arm64', padding }
          const { status, text } = await attacker.call('POST', `${rest(target)}/uploads`, { token, body })
          if (status === 201) accepted.push(JSON.parse(text).id)
        })
        const [upload = ''] = accepted
        const socket = await attacker.connect(target.apiUrl)
        const head = `PUT /api/v1/namespaces/${team}/uploads/${upload} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n`
        await attacker.write(
          socket,
          `${head}Content-Type: application/octet-stream\r\nContent-Length: 1000000\r\n\r\nabc`,
        )
        await sleep(500)
      },
    },
    {
      name: 'developer: an events list that only holds one kind of change',
      attack: async (attacker, target) => {
        const { developer: token, other } = target.tokens
        await make(attacker, target, 'relabelled')
        const body = { name: 'witness', image: 'any' }
        await attacker.call('POST', `${rest(target, others)}/vmconfigs`, { token: other, body })
        // In a long run more than all that the cluster keeps.
        await attacker.many(attacker.effort.isLong ? 22_000 : 1_000, 20, (index) =>
          attacker.call('PUT', `${rest(target)}/metadata/vmconfigs/relabelled`, {
            token,
            body: { labels: { turn: `${index}` } },
          }),
        )
        const { text: own } = await attacker.call('GET', `${rest(target)}/events?fieldSelector=involved.name%3Drelabelled`, { token }) // biome-ignore format: one call
        const changes = own.split('"SetMetadata"').length - 1
        assert.ok(changes > 0 && changes < 100, `${changes} events of label changes of one object`)
        const { text: theirs } = await attacker.call('GET', `${rest(target, others)}/events`, { token: other })
        assert.match(theirs, /"name":"witness"/, 'the event of another namespace was kept')
      },
    },
    {
      name: 'developer: a VM configuration with 128 KiB of annotations, changed again and again',
      attack: async (attacker, target) => {
        await make(attacker, target, 'rewritten')
        await patch(attacker, target, ['rewritten', 'merge'], {
          metadata: { annotations: { large: 'x'.repeat(130_000) } },
        })
        await attacker.many(attacker.times(600), 5, (index) =>
          patch(attacker, target, ['rewritten', 'merge'], { metadata: { annotations: { turn: `${index}` } } }),
        )
      },
    },
    {
      name: 'developer: VM configurations with 128 KiB of annotations, until they are refused',
      attack: async (attacker, target) => {
        const { developer: token } = target.tokens
        const annotations = { large: 'x'.repeat(130_000) }
        let refused = 0
        await attacker.many(attacker.times(500), 10, async (index) => {
          if (refused > 20) return
          const { status } = await attacker.call('POST', configs(target), { token, body: configOf(`large-${index}`, { annotations }) }) // biome-ignore format: one call
          if (status >= 400) refused++
        })
      },
    },
    {
      name: 'developer: lists of them without a limit, by every way',
      attack: (attacker, target) => readAll(attacker, target, 2),
    },
    { name: 'developer: lists of them that are never read', attack: readNothing },
    {
      name: 'developer: small VM configurations by the thousand, and their lists',
      attack: async (attacker, target) => {
        // In another namespace: that of the other doors is full.
        const { other: token } = target.tokens
        await attacker.many(attacker.times(1_500), 30, (index) =>
          attacker.call('POST', `${rest(target, others)}/vmconfigs`, {
            token,
            body: { name: `small-${index}`, image: 'any' },
          }),
        )
        await readAll(attacker, target, 2, others)
      },
    },
    {
      name: 'developer: requests of 1 MiB that end at the same time',
      attack: async (attacker, target) => {
        const { host } = new URL(target.apiUrl)
        // As many fields as are parsed.
        const body = `{"name":"x","image":"any","unknown":[${`{"a":"${'b'.repeat(64)}"},`.repeat(14_000)}{}]}`
        // That of the other doors is full.
        const head = `POST /api/v1/namespaces/${others}/vmconfigs HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${target.tokens.other}\r\n`
        const types = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
        const count = attacker.times(30)
        const sockets: Socket[] = []
        await attacker.many(count, count, async () => {
          const socket = await attacker.connect(target.apiUrl)
          attacker.sent++
          await attacker.write(socket, head + types + body.slice(0, -1))
          sockets.push(socket)
        })
        await sleep(1_000)
        const answered = sockets.map(async (socket) => {
          const [answer] = (await once(socket, 'data')) as [Buffer]
          attacker.noteStatus(Number(answer.toString('latin1').split(' ', 2)[1]), () => answer.toString())
        })
        for (const socket of sockets) socket.write(body.slice(-1))
        await Promise.race([Promise.allSettled(answered), sleep(20_000)])
        const statusOf = (status: number): number => attacker.statuses.get(status) ?? 0
        // Of many at once, some may be refused.
        assert.ok(statusOf(201) + statusOf(409) > 20, 'the bodies were parsed')
      },
    },
  ],
})
