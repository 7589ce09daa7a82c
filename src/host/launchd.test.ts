// The property list for launchd, parsed by a strict parser.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { exec } from '../platform/exec.ts'
import { hostBootId } from '../platform/processes.ts'
import { launchdFiles, launchdList, unloadRule } from './launchd.ts'
import { isScreenRuleLoaded, screenRuleFile } from './screen-rule.ts'
import type { ServiceDefinition } from './service.ts'

const agent: ServiceDefinition = {
  kind: 'agent',
  command: ['/opt/homebrew/bin/node', '/usr/local/lib/svc3/agent/current/dist/svc3.cjs', 'agent', '--name', 'a<b>&"c"'],
  user: 'admin',
  groups: [],
  dataDir: '/Users/admin/svc3',
  writes: [],
}

type Value = string | number | boolean | Value[] | { [key: string]: Value }

/** Every element must be known and properly nested, with nothing in between. */
function parsePlist(text: string): Value {
  const body =
    /^<\?xml version="1\.0" encoding="UTF-8"\?>\n<!DOCTYPE plist [^>]*>\n<!--.*?-->\n<plist version="1\.0">\n([\s\S]*)\n<\/plist>\n$/.exec(
      text,
    )?.[1]
  assert.ok(body !== undefined, 'it is no property list')
  const tokens = [...body.matchAll(/<(string|key|integer)>([^<]*)<\/\1>|<(true|false)\/>|<(\/?(?:dict|array))>|(\S)/g)]
  let at = 0
  const plain = (raw: string): string => raw.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
  function read(): Value {
    const [whole, kind, content = '', word, bracket, stray] = tokens[at++] ?? []
    assert.equal(stray, undefined, `"${whole}" is nothing that a property list has`)
    if (kind === 'string') return plain(content)
    if (kind === 'integer') return Number(content)
    if (word !== undefined) return word === 'true'
    if (bracket === 'array') {
      const items: Value[] = []
      while (tokens[at]?.[4] !== '/array') items.push(read())
      at++
      return items
    }
    assert.equal(bracket, 'dict', `"${whole}" where a value should be`)
    const entries: [string, Value][] = []
    while (tokens[at]?.[4] !== '/dict') {
      const [, key, name = ''] = tokens[at++] ?? []
      assert.equal(key, 'key')
      entries.push([plain(name), read()])
    }
    at++
    return Object.fromEntries(entries)
  }
  const value = read()
  assert.equal(at, tokens.length, 'there is something behind its end')
  return value
}

describe('property list', () => {
  it('the property list restarts the agent and keeps VMs running', () => {
    const list = parsePlist(launchdList(agent)) as Record<string, Value>
    assert.equal(list.Label, 'io.svc3.agent')
    assert.deepEqual(list.ProgramArguments, agent.command)
    assert.deepEqual(list.KeepAlive, { SuccessfulExit: false })
    assert.equal(list.AbandonProcessGroup, true)
    assert.equal(list.RunAtLoad, true)
    assert.equal(list.UserName, 'admin')
    assert.equal(list.WorkingDirectory, '/Users/admin/svc3')
    assert.equal(list.Umask, 0o077)
    assert.deepEqual(list.EnvironmentVariables, {
      PATH: '/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin',
      SVC3_LOG_FILE: list.StandardOutPath,
    })
  })

  it('the property list ends all processes of the server', () => {
    const list = parsePlist(launchdList({ ...agent, kind: 'server' })) as Record<string, Value>
    assert.equal(list.Label, 'io.svc3.server')
    assert.equal(list.AbandonProcessGroup, undefined)
  })

  it('the property list refuses characters that XML does not allow', () => {
    assert.throws(() => launchdList({ ...agent, command: ['a\u0000b'] }), /cannot be in a property list/)
  })
})

describe('rule for screens', () => {
  const [, rule, daemon] = launchdFiles(agent)

  it('the rule for screens closes what the user of the agent serves on ports that the system chose, except to this Mac', () => {
    assert.equal(
      rule?.text.split('\n')[1],
      'block drop in quick on ! lo0 proto tcp from any to any port 49152:65535 user admin flags S/SA',
      'and nothing that answers a connection which this Mac has opened',
    )
    assert.equal(rule?.path, '/etc/pf.anchors/io.svc3.agent')
    assert.equal(launchdFiles({ ...agent, kind: 'server' }).length, 1, 'the server has no screens')
  })

  it('the rule for screens is loaded by root below the anchor of Apple, counts for this boot only, and is removed with its reference to pf', async () => {
    const list = parsePlist(daemon?.text ?? '') as { ProgramArguments: string[]; KeepAlive: object; UserName?: string }
    assert.deepEqual([list.KeepAlive, list.UserName], [{ SuccessfulExit: false }, undefined])
    const [, , script = ''] = list.ProgramArguments
    const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-pf-'))
    const file = path.join(folder, 'loaded')
    const calls = path.join(folder, 'calls')
    const standIn = (name: string, text: string) =>
      fs.writeFile(path.join(folder, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
    await standIn('sysctl', `echo '${await hostBootId()}'`)
    const run = (text: string) =>
      exec('/bin/sh', ['-c', text.replaceAll(screenRuleFile, file)], {
        env: { PATH: `${folder}:${process.env.PATH}` },
      })
    const pfctl = (rules: string) =>
      standIn(
        'pfctl',
        `echo "$@" >> ${calls}\ncase "$*" in '-s rules') echo '${rules}' ;; -E) echo 'pf enabled' >&2; echo 'Token : 4711' >&2 ;; esac`,
      )
    await pfctl('')
    await assert.rejects(run(script), 'pf.conf is not loaded yet')
    assert.equal(await isScreenRuleLoaded(file), false)
    await pfctl('anchor "com.apple/*" all')
    await run(script)
    assert.equal(await isScreenRuleLoaded(file), true)
    await run(unloadRule)
    assert.equal(await isScreenRuleLoaded(file), false)
    const said = (await fs.readFile(calls, 'utf8')).trim().split('\n')
    assert.ok(said.includes('-q -a com.apple/io.svc3.agent -f /etc/pf.anchors/io.svc3.agent'))
    assert.deepEqual(said.slice(-2), ['-q -a com.apple/io.svc3.agent -F all', '-q -X 4711'])
    await fs.writeFile(file, 'an earlier boot\nToken : 1\n')
    assert.equal(await isScreenRuleLoaded(file), false)
    await fs.rm(folder, { recursive: true })
  })
})
