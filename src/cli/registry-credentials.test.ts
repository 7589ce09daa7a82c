// The regcred commands against a stand-in service: output in each format, passwords, errors and exit codes.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import fs from 'node:fs'
import os from 'node:os'
import { after, before, beforeEach, describe, it } from 'node:test'
import { type FakeHostOptions, run } from '../../test/support/rigs/cli-host.ts'
import { type FakeService, recordOf, send, startFakeService } from '../../test/support/stand-ins/api.ts'

let service: FakeService
let env: Record<string, string>
before(async () => {
  service = await startFakeService()
  env = { SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.token }
})
after(() => service[Symbol.asyncDispose]())
beforeEach(() => {
  service.override = undefined
  service.stored.clear()
  service.requests.length = 0
  service.stored.set('svc-default https://ghcr.io', recordOf({ server: 'https://ghcr.io', username: 'ci-bot' }))
})

const regcred = (words: string, options: FakeHostOptions = {}) =>
  run(['regcred', ...words.split(' ')], { ...options, env: { ...env, ...options.env } })
const add = 'add https://quay.io -u me --password-stdin'
const lines = (text: string): string[] => text.split('\n').slice(0, -1)

describe('regcred list', () => {
  it('regcred list is tab-separated and exact in a pipe', async () => {
    assert.equal((await regcred('list')).stdout, 'SERVER\tUSERNAME\nhttps://ghcr.io\tci-bot\n')
    const wide = 'https://ghcr.io\tci-bot\tfalse\t2026-11-15T09:00:00Z\tadmin\n'
    assert.equal((await regcred('list -o wide')).stdout, `SERVER\tUSERNAME\tINSECURE\tUPDATED\tBY\n${wide}`)
  })

  it('regcred list is aligned, with relative times, on a terminal', async () => {
    const terminal = { stdout: true }
    const { stdout } = await regcred('list -o wide --no-color', { terminal })
    assert.deepEqual(lines(stdout), [
      'SERVER            USERNAME   INSECURE   UPDATED   BY',
      'https://ghcr.io   ci-bot     false      2 h ago   admin',
    ])
    assert.ok((await regcred('list', { terminal })).stdout.startsWith('\x1b[1mSERVER'))
    assert.ok((await regcred('list', { terminal, env: { NO_COLOR: '1' } })).stdout.startsWith('SERVER'))
  })

  it('regcred add with a bare host is refused with the line that works, and without the password', async () => {
    const { exitCode, stderr } = await regcred('add harbor.lab:5000 -u me -p planted-secret -n svc-ios')
    assert.equal(exitCode, 2)
    assert.match(stderr, /\nsvc3: Run svc3 regcred add https:\/\/harbor\.lab:5000 -u me --password-stdin -n svc-ios\n/)
    assert.ok(!stderr.includes('planted-secret'))
    assert.match((await regcred('remove harbor.lab:5000')).stderr, /\nsvc3: Use https:\/\/harbor\.lab:5000\n/)
  })

  it('regcred list is a bare array in JSON and YAML, and nothing else on either stream', async () => {
    const { stdout, stderr } = await regcred('list -o json')
    assert.deepEqual(JSON.parse(stdout), [recordOf({ server: 'https://ghcr.io', username: 'ci-bot' })])
    assert.equal(stderr, '')
    assert.match(
      (await regcred('list -o yaml')).stdout,
      /^- server: https:\/\/ghcr\.io\n {2}name: ghcr\.io\n {2}username: ci-bot\n/,
    )
    service.stored.clear()
    for (const format of ['json', 'yaml']) {
      const terminal = { stdout: true }
      const { exitCode, ...empty } = await regcred(`list -o ${format}`, { terminal })
      assert.deepEqual([exitCode, empty.stdout, empty.stderr], [0, '[]\n', ''])
    }
  })

  it('regcred list without credentials says so on a terminal, and prints only the header in a pipe', async () => {
    service.stored.clear()
    const seen = await regcred('list', { terminal: { stdout: true } })
    assert.deepEqual([seen.stdout, seen.stderr], ['', 'svc3: No registry credentials in svc-default\n'])
    const piped = await regcred('list')
    assert.deepEqual([piped.stdout, piped.stderr], ['SERVER\tUSERNAME\n', ''])
  })

  it('regcred list shows those that are named, and exits 5 when one is missing', async () => {
    const { exitCode, stdout, stderr } = await regcred('list https://GHCR.io:443 https://quay.io')
    assert.equal(stdout, 'SERVER\tUSERNAME\nhttps://ghcr.io\tci-bot\n')
    assert.equal(exitCode, 5)
    assert.match(
      stderr,
      /^svc3: Registry credential https:\/\/quay\.io not found in svc-default\nsvc3: .*regcred list.*\n$/,
    )
  })

  it('regcred list escapes control characters of a stored name', async () => {
    service.stored.set('svc-default x', recordOf({ server: 'x', username: 'a\x1b[2J\tb\n' }))
    const { stdout } = await regcred('list', { terminal: { stdout: true } })
    assert.ok(stdout.includes('a\\u001b[2J\\tb\\n'))
  })
})

describe('regcred add', () => {
  it('regcred add stores, then needs --replace, then replaces', async () => {
    const stored = await regcred(add, { input: 'planted-secret\n' })
    assert.deepEqual(
      [stored.exitCode, stored.stdout, stored.stderr],
      [0, 'Registry credentials for https://quay.io stored in namespace svc-default.\n', ''],
    )
    assert.equal(service.passwords.get('https://quay.io'), 'planted-secret')
    const again = await regcred(add, { input: 'other' })
    assert.equal(again.exitCode, 6)
    assert.equal(again.stderr, 'svc3: credentials for "https://quay.io" exist\nsvc3: use --replace\n')
    const replaced = await regcred(`${add} --replace`, { input: 'other' })
    assert.equal(replaced.stdout, 'Registry credentials for https://quay.io replaced in namespace svc-default.\n')
  })

  it('regcred add prints only the record with -o json', async () => {
    const { stdout, stderr } = await regcred('add https://quay.io -u me -p planted-secret -o json')
    assert.deepEqual(JSON.parse(stdout), [recordOf({ server: 'https://quay.io', username: 'me' })])
    assert.equal(stderr, '')
  })

  it('regcred add warns about --password once on each terminal, and never in a pipe or with --quiet', async () => {
    const terminal = { stdout: true }
    const shells = [randomUUID(), randomUUID()]
    const said = async (options: Parameters<typeof regcred>[1]) =>
      lines((await regcred('add https://quay.io -u me -p planted-secret --replace', options)).stderr)
    const warning = ['svc3: Other users of this machine can see --password; --password-stdin is safer']
    try {
      for (const shell of shells) assert.deepEqual(await said({ terminal, shell }), warning)
      for (const shell of shells) assert.deepEqual(await said({ terminal, shell }), [])
      assert.deepEqual(await said({ terminal }), warning, 'where the shell is not known')
      assert.deepEqual(await said({}), [])
    } finally {
      for (const shell of shells) fs.rmSync(`${os.tmpdir()}/svc3-password-${shell}`)
    }
    const quiet = await regcred('add https://quay.io -u me --password=planted-secret --replace --quiet')
    assert.deepEqual([quiet.exitCode, quiet.stdout, quiet.stderr], [0, '', ''])
  })

  it('regcred add removes exactly one newline at the end', async () => {
    const cases = {
      'a\n': 'a',
      'a\r\n': 'a',
      a: 'a',
      'a\n\n': 'a\n',
      '\n\n': '\n',
      ' a ': ' a ',
      'a\r': 'a\r',
      'ä€😀\n': 'ä€😀',
    }
    for (const [input, password] of Object.entries(cases)) {
      assert.equal((await regcred(`${add} --replace`, { input })).exitCode, 0)
      assert.equal(service.passwords.get('https://quay.io'), password)
    }
  })

  it('regcred add refuses a password that is empty, too long or no text', async () => {
    for (const input of ['', '\n', '\r\n', 'x'.repeat(70_000), Buffer.from([0xff, 0xfe])]) {
      const { exitCode, stderr } = await regcred(add, { input })
      assert.equal(exitCode, 2)
      assert.match(stderr, /password/)
    }
    assert.equal((await regcred('add https://quay.io -u me --password=')).exitCode, 2)
    assert.equal(service.requests.length, 0)
  })

  it('regcred add asks for the password on a terminal, without showing it', async () => {
    const terminal = { stdin: true }
    for (const words of ['add https://quay.io -u me --replace', `${add} --replace`]) {
      const typed = await regcred(words, { terminal, input: 'wrong\u0015sefx\u007f\bcret\r' })
      assert.deepEqual([typed.exitCode, typed.stderr], [0, 'Password for https://quay.io: \n'])
      assert.deepEqual(typed.echo, [false, true])
      assert.equal(service.passwords.get('https://quay.io'), 'secret')
    }
    const given = await regcred(add, { terminal, input: 'sec\u0003' })
    assert.deepEqual([given.exitCode, given.echo], [130, [false, true]])
  })

  it('regcred add requires one source of the password', async () => {
    const none = await regcred('add https://quay.io -u me')
    assert.deepEqual([none.exitCode, lines(none.stderr)[0]], [2, 'svc3: A password is required'])
    const both = await regcred('add https://quay.io -u me -p planted-secret --password-stdin')
    assert.equal(both.exitCode, 2)
    assert.ok(!both.stderr.includes('planted-secret'))
  })

  it('regcred add checks the address before anything else', async () => {
    const plain = await regcred('add http://10.0.0.7:5000 -u me --password-stdin', { input: 'a' })
    assert.deepEqual([plain.exitCode, lines(plain.stderr)[1]], [2, 'svc3: Use https, or add --allow-insecure'])
    assert.equal((await regcred('add ghcr.io -u me --password-stdin', { input: 'a' })).exitCode, 2)
    assert.equal(service.requests.length, 0)
    assert.equal(
      (await regcred('add http://10.0.0.7:5000 -u me --password-stdin --allow-insecure', { input: 'a' })).exitCode,
      0,
    )
    assert.equal(JSON.parse(service.requests[0]?.body ?? '').allowInsecure, true)
  })

  it('regcred add never repeats what may be part of a password', async () => {
    const slips = ['-p planted secret-part', '--passwordplanted', '-p -planted', '-p', '--pasword=planted']
    for (const slip of slips) {
      const { exitCode, stderr } = await regcred(`add https://quay.io -u me ${slip}`)
      assert.equal(exitCode, 2, slip)
      assert.ok(!/planted|secret-part/.test(stderr), stderr)
    }
  })
})

describe('regcred remove', () => {
  it('regcred remove removes, then finds nothing', async () => {
    const removed = await regcred('remove https://ghcr.io')
    assert.deepEqual(
      [removed.exitCode, removed.stdout],
      [0, 'Registry credentials for https://ghcr.io removed from namespace svc-default.\n'],
    )
    const again = await regcred('remove https://ghcr.io')
    assert.equal(again.exitCode, 5)
    assert.match(again.stderr, /not found/)
  })

  it('regcred remove prints the outcome as an array with -o json', async () => {
    const { stdout } = await regcred('remove https://ghcr.io -o json')
    assert.equal(JSON.parse(stdout)[0].status, 'Success')
  })
})

describe('regcred failures', () => {
  const refusals = [
    ['list', { SVC3_TOKEN: 'stale-token' }, 3, /Unauthorized/],
    ['list -n svc-closed', {}, 4, /only administrators/],
    ['list -n svc-missing', {}, 5, /not found/],
    ['list', { SVC3_DEFAULT_NAMESPACE: 'svc-missing' }, 5, /not found/],
    ['list', { ORKA_DEFAULT_NAMESPACE: 'svc-missing' }, 5, /not found/],
    ['list -n ..', {}, 2, /namespace/],
  ] as const
  for (const [words, more, exitCode, text] of refusals) {
    it(`regcred ${words} ${JSON.stringify(more)} exits ${exitCode}`, async () => {
      const outcome = await regcred(words, { env: more })
      assert.equal(outcome.exitCode, exitCode)
      assert.match(outcome.stderr, text)
      assert.equal(outcome.stdout, '')
      assert.ok(lines(outcome.stderr).length <= 2)
    })
  }

  it('regcred exits 7 when the service times out, and names the request when it fails', async () => {
    service.override = (_, response) =>
      send(response, 504, { kind: 'Status', message: 'late', reason: 'Timeout', code: 504 })
    assert.equal((await regcred('list')).exitCode, 7)
    service.override = (_, response) =>
      send(response, 500, { kind: 'Status', message: 'broken', reason: 'InternalError', code: 500, requestId: 'r-9' })
    const { exitCode, stderr } = await regcred('list')
    assert.deepEqual([exitCode, lines(stderr)[0]], [1, 'svc3: broken (request r-9)'])
  })

  it('regcred exits 130 when it is interrupted while it waits', async () => {
    const controller = new AbortController()
    service.override = () => controller.abort()
    const { exitCode, stderr } = await regcred('list', { interruption: controller.signal })
    assert.deepEqual([exitCode, stderr], [130, 'svc3: Interrupted\n'])
  })

  it('regcred shows a stack only on demand, and no secret in it', async () => {
    service.override = (_, response) =>
      send(response, 422, { kind: 'Status', message: 'bad planted-secret', reason: 'Invalid', code: 422 })
    const quiet = await regcred(add, { input: 'planted-secret' })
    assert.equal(quiet.stderr, 'svc3: bad [redacted]\n')
    const loud = await regcred(add, { input: 'planted-secret', env: { SVC3_DEBUG: '1' } })
    assert.match(loud.stderr, /\n\s+at /)
    assert.ok(!loud.stderr.includes('planted-secret') && !loud.stderr.includes(service.token))
  })
})
