// The node's configuration file: which settings are accepted and refused. Refusals never contain secrets.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { AgentSettingsError, appleNetwork, parseAgentSettings, readAgentSettings } from './agent-settings.ts'

const key = 'stand-in for a key '.repeat(4).slice(0, 64)
let folder: string
before(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-settings-'))
})
after(() => fs.rm(folder, { recursive: true }))

describe('parseAgentSettings', () => {
  it('parseAgentSettings accepts a boot disk, its format, a key and a processor', () => {
    const given = { bootDisk: '/srv/oc.qcow2', bootDiskFormat: 'qcow2', smcKey: key, cpu: 'host' }
    assert.deepEqual(parseAgentSettings(JSON.stringify({ macos: given }), 'f'), {
      macos: { openCore: { file: '/srv/oc.qcow2', format: 'qcow2' }, smcKey: key, cpu: 'host' },
    })
    assert.deepEqual(parseAgentSettings('{"macos":{"bootDisk":"/oc.img"}}', 'f'), {
      macos: { openCore: { file: '/oc.img', format: 'raw' } },
    })
    const ignored = { ignoredChecks: ['login session'] }
    assert.deepEqual(parseAgentSettings(JSON.stringify(ignored), 'f'), ignored)
    assert.deepEqual(parseAgentSettings('{}', 'f'), {})
  })

  it('parseAgentSettings accepts a bridge or allowed networks of sealed guests, and refuses contradictions', () => {
    assert.deepEqual(parseAgentSettings('{"apple":{"bridge":"en0"}}', 'f'), { apple: { bridge: 'en0' } })
    assert.deepEqual(parseAgentSettings('{"apple":{"screen":"open"}}', 'f'), { apple: { screen: 'open' } })
    assert.throws(() => parseAgentSettings('{"apple":{"screen":true}}', 'f'), /apple\.screen must be "open"/)
    assert.deepEqual(appleNetwork(undefined, { bridge: 'en0' }), { kind: 'bridged', card: 'en0' })
    const { apple } = parseAgentSettings('{"apple":{"allow":["10.0.0.0/8"]}}', 'f')
    assert.deepEqual(appleNetwork('sealed', apple), { kind: 'sealed', allow: ['10.0.0.0/8'] })
    const folders = { directories: ['/Users/ci/cache'] }
    assert.deepEqual(parseAgentSettings(JSON.stringify({ apple: folders }), 'f'), { apple: folders })
    for (const asked of [undefined, 'user'] as const) assert.deepEqual(appleNetwork(asked), { kind: 'shared' })
    assert.throws(() => appleNetwork('sealed', { bridge: 'en0' }), /Use either apple\.bridge/)
    assert.throws(() => appleNetwork(undefined, apple), /Add --network sealed/)
  })

  const refused: readonly (readonly [name: string, text: string, message: RegExp])[] = [
    ['what is no JSON, without quoting it', `{"macos":{"smcKey":"${key}`, /not JSON/],
    ['an unknown field', '{"macOS":{}}', /Unknown field "macOS" in it; use macos, apple, ignoredChecks/],
    ['a field that is no text', '{"macos":{"cpu":1}}', /macos\.cpu/],
    ['checks that are no list', '{"ignoredChecks":"login session"}', /ignoredChecks must be a list/],
    ['a list', '{"macos":[]}', /macos must be an object/],
    ['a relative path', '{"macos":{"bootDisk":"oc.img"}}', /absolute/],
    ['a format that QEMU would have to guess', '{"macos":{"bootDiskFormat":"vmdk"}}', /raw or qcow2/],
    [
      'a bridge that is no card',
      '{"apple":{"bridge":"--net-host"}}',
      /apple\.bridge must be the name of a network interface/,
    ],
    ['folders that are relative', '{"apple":{"directories":["cache"]}}', /a list of absolute paths/],
    ['a bridge that would list them', '{"apple":{"bridge":"list"}}', /apple\.bridge/],
    [
      'a range that is none',
      '{"apple":{"allow":["10.0.0.0/8,0.0.0.0/0"]}}',
      /a list of networks, for example 10\.0\.0\.0\/8/,
    ],
    ['a key that is too short', `{"macos":{"smcKey":"${key.slice(1)}"}}`, /64 printable characters.*has 63/],
    ['a key that would end early', JSON.stringify({ macos: { smcKey: `"${key.slice(1)}` } }), /without '"'/],
  ]
  for (const [name, text, message] of refused)
    it(`parseAgentSettings refuses ${name}`, () => {
      assert.throws(
        () => parseAgentSettings(text, '/f'),
        (error: Error) =>
          error instanceof AgentSettingsError && message.test(error.message) && !error.message.includes('stand-in'),
      )
    })
})

describe('readAgentSettings', () => {
  it('readAgentSettings needs no file in the data folder, but requires one that an option names', async () => {
    assert.deepEqual(await readAgentSettings({ dataDir: folder }), {})
    const configFile = path.join(folder, 'none.json')
    await assert.rejects(readAgentSettings({ dataDir: folder, configFile }), /Cannot read .*none\.json \(ENOENT\)/)
  })

  it('readAgentSettings refuses a file that other users can read', async () => {
    const file = path.join(folder, 'agent.json')
    await fs.writeFile(file, JSON.stringify({ macos: { smcKey: key } }))
    await fs.chmod(file, 0o640)
    await assert.rejects(readAgentSettings({ dataDir: folder }), /chmod 600/)
    await fs.chmod(file, 0o600)
    assert.equal((await readAgentSettings({ dataDir: folder })).macos?.smcKey, key)
  })
})
