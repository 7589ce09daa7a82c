// Dashboards and alert rules name metrics and labels that a server really exposes.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { before, describe, it } from 'node:test'
import { parse } from 'yaml'
import { startControlPlane } from '../../src/control-plane/control-plane.ts'
import { serviceNames } from '../../src/host/service.ts'
import { makeFolder, root } from '../support/processes/dev-server.ts'

const docs = path.join(root, 'docs')
const read = (name: string): string => fs.readFileSync(path.join(docs, name), 'utf8')

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly annotations: { readonly summary: string }
}
const rules = (parse(read('alerts.yml')) as { groups: { rules: Rule[] }[] }).groups.flatMap((group) => group.rules)

interface Dashboard {
  readonly panels: { readonly title: string; readonly targets: { readonly expr: string }[] }[]
  readonly templating: { readonly list: { readonly query: string }[] }
}
const dashboards = fs.readdirSync(path.join(docs, 'dashboards')).map((name) => {
  const { panels, templating } = JSON.parse(read(`dashboards/${name}`)) as Dashboard
  return [
    ...panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
    ...templating.list.map(({ query }) => query),
  ]
})
const expressions = [...rules.map(({ expr }) => expr), ...dashboards.flat()]

/** Created by Prometheus for every target. */
const notOurs = new Set(['up'])
const named = (expression: string): string[] =>
  [...expression.matchAll(/\b(?:svc3|process|nodejs)_\w+|\bup\b/g)].map(([name]) => name)

/** Name → its labels. */
let exposed: Map<string, Set<string>>
before(async () => {
  const folder = await makeFolder()
  fs.writeFileSync(path.join(folder, 'config.json'), JSON.stringify({ logLevel: 'silent', legacy: { enabled: true } }))
  const place = { dataFolder: folder, host: '127.0.0.1', port: 0, environment: {} }
  const plane = await startControlPlane({ ...place, plainHttp: true })
  try {
    const { token } = await plane.tokens.issue({ kind: 'user', name: 'a@example.com', admin: true })
    const ask = (url: string, bearer = token): Promise<Response> =>
      fetch(plane.localUrl + url, { headers: { authorization: `Bearer ${bearer}` } })
    await plane.certificates.current()
    // Requests, so that each metric has a sample.
    for (const url of ['/api/v1/namespaces', '/resources/vm/list']) await ask(url)
    await ask('/api/v1/namespaces', 'wrong')
    exposed = labelsOf(await (await ask('/metrics')).text())
  } finally {
    await plane.stop()
    fs.rmSync(folder, { recursive: true, force: true })
  }
})

function labelsOf(text: string): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>()
  for (const line of text.split('\n')) {
    const type = /^# TYPE (\w+) /.exec(line)?.[1]
    if (type) found.set(type, found.get(type) ?? new Set())
    const [, name = '', labels = ''] = /^(\w+)(?:\{(.*)\})? \S+$/.exec(line) ?? []
    if (!name) continue
    const known = found.get(name) ?? new Set()
    for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) known.add(label)
    found.set(name, known)
  }
  return found
}

describe('dashboards and alert rules', () => {
  it('dashboards and alert rules name nothing that a server does not expose', () => {
    assert.ok(expressions.length > 25)
    for (const expression of expressions)
      for (const name of named(expression))
        assert.ok(notOurs.has(name) || exposed.has(name), `${name} in ${expression}`)
  })

  it('dashboards and alert rules ask for labels that those metrics have', () => {
    for (const expression of expressions)
      for (const [, name = '', labels = ''] of expression.matchAll(/\b((?:svc3|process|nodejs)_\w+)\{([^}]*)\}/g))
        for (const [, label = ''] of labels.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)) {
          // A gauge without samples shows no labels; here, VMs.
          const known = exposed.get(name) ?? new Set()
          const isKnown = known.has(label) || label === 'job' || (name === 'svc3_vms' && label === 'state')
          assert.ok(isKnown, `${name} has no label ${label}: ${expression}`)
        }
  })

  it('dashboards and alert rules say what they are about, each under a name of its own', () => {
    assert.equal(new Set(rules.map(({ alert }) => alert)).size, rules.length)
    for (const { annotations } of rules) assert.ok(annotations.summary.length > 10)
  })
})

it('alert rules name units that svc3 server install and svc3 agent install write', () => {
  const units = [...read('alerts.yml').matchAll(/journalctl -u (\S+?)\)/g)].map(([, unit]) => unit)
  assert.ok(units.length > 0)
  for (const unit of units) assert.ok(Object.values(serviceNames).includes(unit ?? ''), unit)
})
