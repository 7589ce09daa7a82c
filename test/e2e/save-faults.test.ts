// kill -9 of the service at each step of a save and a commit: what was asked for comes about, once, or is said to have
// failed; and the command line tells how it goes on.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import { after, before, describe, it } from 'node:test'
import { type DevServer, makeFolder, type Ran, svc3 as run, startDev } from '../support/dev-server.ts'
import { eventually } from '../support/eventually.ts'

let data: string
let dev: DevServer
const start = (point?: string): Promise<DevServer> =>
  startDev(data, {
    args: ['--driver', 'simulated', '--nodes', 'amd64=1,arm64=1'],
    env: point === undefined ? {} : { SVC3_TEST: '1', SVC3_FAILPOINT: point },
  })
const svc3 = (...words: string[]): Promise<Ran> =>
  run(words, { env: { SVC3_API_URL: dev.apiUrl, SVC3_TOKEN: dev.token }, timeoutMs: 30_000 })
const image = async (name: string) => (await dev.call('GET', `/api/v1/namespaces/svc-default/images/${name}`)).body
const save = '/api/v1/namespaces/svc-default/vms/demo/save'

before(async () => {
  data = await makeFolder()
  dev = await start()
  assert.equal((await svc3('vm', 'deploy', 'demo', '-i', 'tiny-arm64', '-c', '1')).code, 0)
})
after(async () => {
  await dev.kill('SIGTERM')
  await fs.rm(data, { recursive: true, force: true })
})

describe('the command line', { timeout: 60_000 }, () => {
  it('says how to look at a save, and follows one to its end', async () => {
    const saved = await svc3('vm', 'save', 'demo', 'first', '-d', 'one')
    assert.deepEqual([saved.code, saved.stderr], [0, ''], saved.stderr)
    assert.match(
      saved.stdout,
      /^VM demo is being saved as image first\. "svc3 image list first" shows how far it is\.\n$/,
    )
    const followed = await svc3('vm', 'save', 'demo', 'second', '--wait')
    assert.deepEqual([followed.code, followed.stdout], [0, 'Image second is Ready.\n'], followed.stderr)
    const committed = await svc3('vm', 'commit', 'demo', '-d', 'new', '--wait')
    assert.deepEqual([committed.code, committed.stdout], [0, 'Image tiny-arm64 is Ready.\n'], committed.stderr)
    assert.match((await svc3('image', 'list', 'tiny-arm64')).stdout, /\ntiny-arm64\tnew\t10G\tarm64\tReady\n/)
    assert.equal((await svc3('vm', 'deploy', 'next', '-i', 'second', '-c', '1', '--cold')).code, 0)
    assert.equal((await svc3('vm', 'delete', 'next')).code, 0)
  })

  it('refuses at once what can never be, and what is not now', async () => {
    for (const [words, code] of [
      [['save', 'demo', '../x'], 2],
      [['save', 'demo'], 2],
      [['save', 'none', 'x'], 5],
      [['commit', 'none'], 5],
      [['save', 'demo', 'second'], 6],
    ] as const)
      assert.equal((await svc3('vm', ...words)).code, code, words.join(' '))
  })
})

describe('a service that is killed', { timeout: 120_000 }, () => {
  const points = [
    'captures.save.recorded',
    'captures.finish',
    'captures.finished',
    'captures.frozen',
    'captures.delivered',
  ]
  for (const [index, point] of points.entries())
    it(`at ${point} goes on with the save when it is back, also when it is asked for again`, async () => {
      await dev.kill('SIGTERM')
      dev = await start(point)
      const body = { imageName: `killed-${index}`, description: 'whole' }
      const headers = { 'idempotency-key': `key-${index}` }
      await eventually(async () =>
        assert.equal((await dev.call('GET', save.slice(0, -'/save'.length))).body.powerState, 'running'),
      )
      await dev.call('POST', save, body, headers).catch(() => undefined)
      assert.equal((await dev.ended).signal, 'SIGKILL')
      dev = await start()
      const again = await dev.call('POST', save, body, headers)
      assert.equal(again.status, 202, JSON.stringify(again.body))
      await eventually(async () => assert.equal((await image(`killed-${index}`)).state, 'Ready'))
      assert.equal((await image(`killed-${index}`)).description, 'whole')
      const { body: vm } = await dev.call('GET', save.slice(0, -'/save'.length))
      assert.deepEqual([vm.powerState, vm.operation], ['running', undefined])
    })

  it('at captures.commit.locked goes on with the commit when it is asked for again', async () => {
    await dev.kill('SIGTERM')
    dev = await start('captures.commit.locked')
    const commit = save.replace('/save', '/commit')
    const headers = { 'idempotency-key': 'commit-1' }
    await eventually(async () =>
      assert.equal((await dev.call('GET', save.slice(0, -'/save'.length))).body.powerState, 'running'),
    )
    await dev.call('POST', commit, { description: 'once' }, headers).catch(() => undefined)
    assert.equal((await dev.ended).signal, 'SIGKILL')
    dev = await start()
    assert.equal((await image('tiny-arm64')).state, 'Updating')
    await eventually(async () =>
      assert.equal((await dev.call('GET', save.slice(0, -'/save'.length))).body.powerState, 'running'),
    )
    assert.equal((await dev.call('POST', commit, { description: 'once' }, headers)).status, 202)
    await eventually(async () => assert.equal((await image('tiny-arm64')).state, 'Ready'))
    assert.equal((await image('tiny-arm64')).description, 'once')
  })
})
