// svc3 migrate: output, formats and exit codes.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { run } from '../../test/support/rigs/cli-host.ts'
import { startFakeService } from '../../test/support/stand-ins/api.ts'
import { getLegacyUsage } from '../api/service/legacy-usage.ts'
import { commandsFor } from '../legacy/advice.ts'
import { legacyRows } from '../legacy/map.ts'
import { commands } from './commands/index.ts'
import { isLeaf, locate } from './line/locate.ts'
import { parse } from './line/parse.ts'

const fixtures = path.resolve(import.meta.dirname, '../../test/fixtures')
let folder: string
before(async () => {
  folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-migrate-'))
})
after(() => fs.rm(folder, { recursive: true }))
const write = (name: string, text: string | Uint8Array) => fs.writeFile(path.join(folder, name), text)
const scan = (...words: string[]) => run(['migrate', 'scan', ...words], { workingDir: folder })

describe('migrate scan', () => {
  it('svc3 migrate scan shows place, call, replacement and command, then sums, and ends with 1', async () => {
    await write('a.sh', 'curl -X POST "$ORKA/resources/vm/exec/stop" -d x\ncurl "$ORKA/resources/ports"\n')
    const { exitCode, stdout, stderr } = await scan('a.sh')
    assert.equal(exitCode, 1)
    const [found, sums] = stdout.split('\n\n').map((part) =>
      part
        .trim()
        .split('\n')
        .map((line) => line.split('\t')),
    )
    assert.deepEqual(found?.[0], ['PLACE', 'CALLS', 'CALL', 'REPLACEMENT', 'COMMAND'])
    assert.deepEqual(found?.[1], [
      'a.sh:1',
      '1',
      'POST /resources/vm/exec/stop',
      'POST /api/v1/namespaces/svc-default/vms/vm-cznfv/exec {"command":"stop"}',
      'svc3 vm stop NAME',
    ])
    assert.match(found?.[2]?.[3] ?? '', /^removed: the VM record includes its ports/)
    assert.deepEqual(
      sums?.map(([calls, files, endpoint]) => [calls, files, endpoint]),
      [
        ['CALLS', 'FILES', 'ENDPOINT'],
        ['1', '1', 'POST /resources/vm/exec/stop'],
        ['1', '1', 'GET /resources/ports'],
      ],
    )
    assert.match(stderr, /2 endpoints of the 2\.4\.x API; 1 has no replacement/)
  })

  it('svc3 migrate scan exits 0 without findings, and says so on a terminal', async () => {
    await write('clean.sh', 'curl "$API/api/v1/namespaces/svc-default/vms"\n')
    const { exitCode, stderr } = await run(['migrate', 'scan', 'clean.sh'], {
      workingDir: folder,
      terminal: { stdout: true },
    })
    assert.equal(exitCode, 0)
    assert.match(stderr, /No calls of the 2\.4\.x API found/)
    assert.deepEqual((await scan('clean.sh', '-o', 'json')).stdout, '[]\n')
  })

  it('svc3 migrate scan prints JSON: a bare array, each finding with example requests', async () => {
    const { exitCode, stdout, stderr } = await scan(
      path.join(fixtures, 'legacy-scan', 'mixed', 'client.js'),
      '--format',
      'json',
    )
    assert.deepEqual([exitCode, stderr], [1, ''])
    const deploy = JSON.parse(stdout).find((each: { call: string }) => each.call === 'POST /resources/vm/deploy')
    assert.deepEqual(deploy.requests, [
      {
        method: 'POST',
        path: '/api/v1/namespaces/svc-default/vms',
        body: { name: 'ios-build', vmConfig: 'ios-build' },
      },
    ])
    assert.deepEqual(
      [deploy.isReplaced, deploy.documentation],
      [true, 'docs/reference/orka-2.4.md#post-resources-vm-deploy'],
    )
  })

  it('svc3 migrate scan prints SARIF with a rule for every endpoint that was found', async () => {
    const { stdout } = await scan(path.join(fixtures, 'legacy-scan'), '-o', 'sarif')
    const { version, runs } = JSON.parse(stdout)
    assert.equal(version, '2.1.0')
    const [{ tool, results }] = runs
    const rules = new Set(tool.driver.rules.map((rule: { id: string }) => rule.id))
    assert.ok(results.length > 100)
    for (const { ruleId, message, level, locations } of results) {
      assert.ok(rules.has(ruleId) && message.text && ['note', 'warning', 'error'].includes(level))
      const { artifactLocation, region } = locations[0].physicalLocation
      assert.ok(artifactLocation.uri && region.startLine >= 1 && region.startColumn >= 1)
    }
  })

  it('svc3 migrate scan reads folders, skips dependencies and binary files, and unpacks logs', async () => {
    const tree = path.join(folder, 'tree')
    await fs.mkdir(path.join(tree, 'node_modules', 'x'), { recursive: true })
    await fs.mkdir(path.join(tree, 'ci'))
    const line = 'curl "$ORKA/resources/vm/list"\n'
    await fs.writeFile(path.join(tree, 'node_modules', 'x', 'a.sh'), line)
    await fs.writeFile(path.join(tree, 'binary.sh'), `\0\0${line}`)
    await fs.writeFile(path.join(tree, 'ci', 'a.sh'), line)
    const log = '1.2.3.4 - - [x] "GET /resources/node/list HTTP/1.1" 200 1\n'
    await fs.writeFile(path.join(tree, 'access.log.1.gz'), gzipSync(log.repeat(3)))
    const { stdout } = await scan('tree', '-o', 'json')
    assert.deepEqual(
      JSON.parse(stdout).map(({ file, line: at, call, count }: Record<string, unknown>) => [file, at, call, count]),
      [
        ['tree/access.log.1', 1, 'GET /resources/node/list', 3],
        ['tree/ci/a.sh', 1, 'GET /resources/vm/list', undefined],
      ],
    )
  })

  it('svc3 migrate scan reads standard input, and sums up', async () => {
    const log =
      '1.2.3.4 - - [x] "GET /resources/vm/list HTTP/1.1" 200 1\n1.2.3.4 - - [x] "POST /token HTTP/1.1" 200 1\n'
    const { stdout } = await run(['migrate', 'scan', '-', '--summary'], { input: log.repeat(2) })
    assert.match(
      stdout,
      /^CALLS\tFILES\tENDPOINT\tREPLACEMENT\n2\t1\tGET \/resources\/vm\/list\t.*\n2\t1\tPOST \/token\t/,
    )
  })

  it('svc3 migrate scan is narrowed by the base address', async () => {
    await write(
      'two.sh',
      'A=http://orka:80\nB=http://other\ncurl $A/resources/vm/list\ncurl $B/resources/vm/list\ncurl http://orka/token\ncurl http://plain/users\n',
    )
    const places = async (...words: string[]) =>
      JSON.parse((await scan('two.sh', '-o', 'json', ...words)).stdout).map((each: { line: number }) => each.line)
    assert.deepEqual(await places(), [3, 4, 5])
    assert.deepEqual(await places('--base-url', 'http://orka:80'), [3])
    assert.deepEqual(await places('--base-url', 'http://plain'), [6])
  })

  it('svc3 migrate scan marks uncertain findings, and --strict omits them', async () => {
    await write('orka.py', 'requests.post(f"{base}/resources/vm/deploy")\nrequests.get(f"{url}/users")\n')
    const { stdout, stderr } = await scan('orka.py')
    assert.match(stdout, /orka\.py:1\t1\tPOST \/resources\/vm\/deploy\t/)
    assert.match(stdout, /orka\.py:2\t1\tGET \/users \(possible\)\t/)
    assert.match(stderr, /1 of 2 findings is not certain; --strict leaves it out/)
    const confidences = async (...words: string[]) =>
      JSON.parse((await scan('orka.py', '-o', 'json', ...words)).stdout).map(
        (each: { confidence: string }) => each.confidence,
      )
    assert.deepEqual(await confidences(), ['certain', 'possible'])
    assert.deepEqual(await confidences('--strict'), ['certain'])
  })

  it('svc3 migrate scan says what it cannot find, and which command shows that', async () => {
    await write('split.java', 'class Client { void go() { http.post(address + Paths.VM + "/deploy", body); } }\n')
    const { exitCode, stderr } = await scan('split.java')
    assert.equal(exitCode, 0)
    assert.match(stderr, /across lines or files are not found; run svc3 migrate usage/)
  })

  it('svc3 migrate scan skips a file that it cannot read, names it, reads the others, and ends with 1', async () => {
    const tree = path.join(folder, 'broken')
    await fs.mkdir(tree)
    await fs.writeFile(path.join(tree, 'a.log.gz'), 'no gzip')
    await fs.writeFile(path.join(tree, 'b.sh'), 'curl "$ORKA/resources/vm/list"\n')
    const both = await scan('broken', '-o', 'json')
    assert.deepEqual([both.exitCode, JSON.parse(both.stdout).length], [1, 1])
    assert.match(both.stderr, /Skipped broken\/a\.log: incorrect header check/)
    await fs.rm(path.join(tree, 'b.sh'))
    assert.equal((await scan('broken')).exitCode, 1, 'not clean: not all of it was read')
  })

  it('svc3 migrate scan names a path that does not exist', async () => {
    const { exitCode, stderr } = await scan('none')
    assert.equal(exitCode, 5, 'another code than for findings')
    assert.match(stderr, /File none not found/)
  })
})

describe('migrate map', () => {
  it('svc3 migrate map names existing commands and options', async () => {
    for (const row of legacyRows)
      for (const line of row.calls.flatMap((call) => commandsFor(row, call))) {
        const { found, rest } = locate(line.split(' ').slice(1), commands)
        assert.ok(isLeaf(found), line)
        const { command } = await found.load()
        assert.doesNotThrow(() => parse(command, rest), line)
      }
  })

  it('svc3 migrate map prints the table, one call, or all calls of a path', async () => {
    const all = await run(['migrate', 'map', '-o', 'json'])
    assert.ok(JSON.parse(all.stdout).length > 60)
    const one = await run(['migrate', 'map', 'delete', '/resources/node/tag/ios', '-n', 'svc-ios'])
    assert.match(
      one.stdout,
      /DELETE \/resources\/node\/tag\/\{tag\}\tPOST \/api\/v1\/namespaces\/svc-ios\/nodes\/mini-arm-13\/untag/,
    )
    assert.equal((await run(['migrate', 'map', '/token'])).stdout.trim().split('\n').length, 4)
  })

  it('svc3 migrate map accepts the URL that a script calls', async () => {
    for (const url of ['http://10.1.1.1/resources/vm/deploy', 'https://orka:8443/resources/vm/deploy/?x=1']) {
      const { exitCode, stdout } = await run(['migrate', 'map', 'POST', url])
      assert.equal(exitCode, 0)
      assert.match(stdout, /^POST \/resources\/vm\/deploy\t/m)
      assert.equal((await run(['migrate', 'map', url])).stdout, stdout)
    }
  })

  it('svc3 migrate map refuses calls that never existed', async () => {
    const { exitCode, stderr } = await run(['migrate', 'map', 'GET', '/resources/vm/fly'])
    assert.equal(exitCode, 5)
    assert.match(stderr, /not found/)
    assert.equal((await run(['migrate', 'map', 'GET'])).exitCode, 2)
  })
})

describe('migrate usage', () => {
  it('svc3 migrate usage prints the callers', async () => {
    await using service = await startFakeService()
    service.override = (_seen, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ ...getLegacyUsage.example.response, enabled: false }))
    }
    const env = { SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.token }
    const { exitCode, stdout, stderr } = await run(['migrate', 'usage'], { env })
    assert.equal(exitCode, 0, stderr)
    assert.match(stdout, /^CALLS\tREFUSED\tENDPOINT\tSUBJECT\tCLIENT\tLAST\n412\t3\tPOST \/resources\/vm\/deploy\t/)
    assert.match(stderr, /The gateway is off/)
  })

  it('svc3 migrate usage --context asks the server of that context', async () => {
    await using service = await startFakeService()
    service.pages.set('/api/v1/legacy/usage', getLegacyUsage.example.response)
    const contexts = { lab: { apiUrl: service.apiUrl, token: service.token } }
    await fs.mkdir(path.join(folder, 'svc3'))
    await write('svc3/config.json', JSON.stringify({ contexts }))
    const { exitCode, stderr } = await run(['migrate', 'usage', '--context', 'lab'], {
      env: { XDG_CONFIG_HOME: folder },
    })
    assert.deepEqual([exitCode, stderr], [0, ''])
  })
})
