// The command line parses every command that the console shows, and sends the request that the console sends.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { allOperations, operations } from '../../src/api/index.ts'
import { commands } from '../../src/cli/commands/index.ts'
import { isLeaf, locate } from '../../src/cli/line/locate.ts'
import { parse } from '../../src/cli/line/parse.ts'
import { commandLine, commandWords, hasCommand, type Input, withoutOption } from './commands.ts'
import { curlLine } from './requests.ts'

/** The arguments as the command line parses them. */
async function parsed(words: readonly string[]) {
  const redirect = words.indexOf('<')
  const { found, rest } = locate(redirect < 0 ? words : words.slice(0, redirect), commands)
  assert.ok(isLeaf(found), `there is no command "${words.join(' ')}"`)
  return parse((await found.load()).command, rest)
}

const ns = { namespace: 'svc-ios' }

describe('show as command', () => {
  it('"show as command" shows a command that the command line parses, for the example of every operation', async () => {
    const known = allOperations.filter(hasCommand)
    assert.ok(known.length > 45)
    for (const operation of known) {
      const { params, body } = operation.example
      await assert.doesNotReject(parsed(commandWords(operation, { params, body })), operation.id)
    }
  })

  it('"show as command" of a deployment has all its options', async () => {
    const body = {
      name: 'demo',
      image: 'tiny-amd64',
      cpu: 4,
      memory: 8,
      tag: 'ios',
      tagRequired: true,
      vncConsole: false,
      labels: { team: 'a b' },
      reservedPorts: '9000:80',
      ttl: '2h',
    }
    const { args, options } = await parsed(commandWords(operations.deployVm, { params: ns, body }))
    assert.equal(args.name, 'demo')
    assert.equal(options.image, 'tiny-amd64')
    assert.equal(options.namespace, 'svc-ios')
    assert.equal(options['tag-required'], true)
    assert.equal(options['disable-vnc'], true)
    assert.deepEqual([options.cpu, options.memory, options.ports, options.ttl], [4, 8, '9000:80', '2h'])
    assert.deepEqual(options.label, ['team=a b'])
  })

  it('"show as command" of an upload has the whole file name', () => {
    const body = { ...(operations.beginUpload.example.body as object), key: 'my disk 2.img 1048576 1750000000000' }
    const words = commandWords(operations.beginUpload, { params: ns, body })
    assert.equal(words[2], 'my disk 2.img')
  })

  it('"show as command" of a list has its filters and namespaces, and names filters without an option', async () => {
    const shown = { label: 'team=ios', owner: 'ada@example.com', state: 'running', node: 'mini-1', search: '' }
    const input = { params: ns, shown, isEverywhere: true }
    const words = commandWords(operations.listVms, input)
    assert.equal(words.join(' '), 'vm list --label team=ios --owner ada@example.com --watch -A')
    const { options } = await parsed(words)
    assert.deepEqual([options.owner, options['all-namespaces']], ['ada@example.com', true])
    assert.deepEqual(withoutOption(operations.listVms, input), ['state', 'node'])
    assert.equal(commandLine(operations.listVms, { params: ns }), 'svc3 vm list --watch -n svc-ios')
    for (const operation of allOperations.filter(({ id }) => id.startsWith('list')).filter(hasCommand))
      await assert.doesNotReject(parsed(commandWords(operation, { params: ns, isEverywhere: true })), operation.id)
  })

  it('"show as command" of a pool has its schedule, a minimum of 0, and the option that removes the schedule', () => {
    const params = { namespace: 'svc-default', pool: 'ios' }
    const schedule = [{ cron: '0 19 * * *', timeZone: 'UTC', minIdle: 0 }]
    const line = (body: object): string => commandLine(operations.updatePool, { params, body })
    assert.equal(line({ minIdle: 0, schedule }), "svc3 pool update ios --min-idle 0 --schedule '0 19 * * * UTC=0'")
    assert.equal(line({ schedule: [], paused: false }), 'svc3 pool update ios --no-schedule --resume')
    assert.equal(line({ paused: true }), 'svc3 pool update ios --pause')
  })

  it('"show as command" of a changed VM configuration resets omitted fields', async () => {
    const params = { namespace: 'svc-default', vmconfig: 'ios' }
    const body = { image: 'sonoma', cpu: 4, memory: 0, tag: '', tagRequired: false, vncConsole: true }
    const words = commandWords(operations.updateVmConfig, { params, body })
    const { options } = await parsed(words)
    assert.deepEqual(
      [options.image, options.cpu, options.reset],
      ['sonoma', 4, ['memory', 'tag', 'tag-required', 'disable-vnc']],
    )
  })

  it('"show as command" quotes for the shell and leaves out the default namespace', () => {
    const input: Input = {
      params: { namespace: 'svc-default', vm: 'demo' },
      body: { imageName: 'x', description: "it's" },
    }
    assert.equal(commandLine(operations.saveVm, input), `svc3 vm save demo x -d 'it'\\''s'`)
    assert.equal(commandLine(operations.getVm, input), 'svc3 vm show demo')
  })

  it('"show as command" and "show as request" never contain a password', () => {
    const body = { server: 'https://ghcr.io', username: 'ci', password: 'planted' }
    const line = commandLine(operations.addRegistryCredential, { params: ns, body })
    assert.equal(line, 'svc3 regcred add https://ghcr.io -u ci --password-stdin -n svc-ios < password.txt')
    const curl = curlLine(operations.addRegistryCredential, { params: ns, body }, 'https://svc3.example')
    assert.ok(!curl.includes('planted'))
    assert.match(curl, /"password":"<password>"/)
  })
})

describe('show as request', () => {
  it('"show as request" is the request of the operation', () => {
    const input = { params: { namespace: 'svc-default', vm: 'demo' }, body: { command: 'stop' } }
    assert.equal(
      curlLine(operations.execVm, input, 'https://svc3.example'),
      [
        "curl -X POST 'https://svc3.example/api/v1/namespaces/svc-default/vms/demo/exec'",
        '-H "Authorization: Bearer $SVC3_TOKEN"',
        "-H 'Content-Type: application/json'",
        `-d '{"command":"stop"}'`,
      ].join(' \\\n  '),
    )
  })

  it('"show as request" watches without buffering and downloads into a file', () => {
    const list = curlLine(operations.listVms, { params: ns, query: { watch: true } }, 'https://svc3.example')
    assert.match(list, /vms\?watch=true'.* -N$/s)
    const download = curlLine(operations.downloadImage, { params: { ...ns, image: 'a b' } }, 'https://svc3.example')
    assert.match(download, /images\/a%20b\/download'.* -OJ$/s)
  })
})
