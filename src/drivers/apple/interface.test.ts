// Every argument list that the driver makes is one that tart has: the driver's functions run with a tart that records them.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { machineDefaults } from '../../api/vms/vm-shape.ts'
import { tartWords } from '../../operator/create-macos.ts'
import { startTimeOf } from '../../platform/processes.ts'
import type { VmSpec } from '../driver.ts'
import { Allowance } from './allowance.ts'
import { endProcess, flushGuest, pauseForCopy } from './ending.ts'
import { runInGuest } from './guest.ts'
import { missingInTart, tartCommands } from './interface.ts'
import { type AppleNetwork, launchOf } from './launch.ts'
import { createMachine, growDisk, readMachine, shapeMachine } from './machine.ts'
import type { AppleRun } from './run.ts'
import { isRunning, type Tart, tartFolder, vmAddress } from './tart.ts'

/** What follows the name in `exec` is the guest's. */
const ownWords = ([command = '', ...words]: readonly string[]): readonly string[] =>
  command === 'exec' ? words.slice(0, words.findIndex((word) => !word.startsWith('-')) + 1) : words

const positionalsOf: Readonly<Record<string, number>> = { list: 0, push: 2 }

/** Returns what tart would refuse. */
function problemOf(list: readonly string[]): string | undefined {
  const [command = ''] = list
  const facts = tartCommands[command]
  if (!facts) return `no command ${command}`
  const known = new Set(facts.uses.split(' '))
  const left = [...ownWords(list)]
  let positionals = 0
  for (let word = left.shift(); word !== undefined; word = left.shift()) {
    const [, name = '', value] = /^--?([a-z-]+)(=.*)?$/.exec(word) ?? []
    if (!word.startsWith('-')) positionals += 1
    else if (value === undefined && known.has(name)) continue
    else if (known.has(`${name}=`) && (value !== undefined || left.shift() !== undefined)) continue
    else return `${command} has no ${word}`
  }
  return positionals === (positionalsOf[command] ?? 1) ? undefined : `${command} with ${positionals} names`
}

const dumpOf = (change: (name: string, option: string) => boolean = () => true): string =>
  JSON.stringify({
    serializationVersion: 0,
    command: {
      commandName: 'tart',
      subcommands: Object.entries(tartCommands).map(([commandName, { uses, has }]) => ({
        commandName,
        arguments: `${uses} ${has}`
          .split(' ')
          .filter((option) => option !== '' && change(commandName, option))
          .map((option) => ({ kind: 'option', names: [{ kind: 'long', name: option.replace('=', '') }] })),
      })),
    },
  })

describe('arguments of tart', () => {
  it('arguments of tart that the driver makes exist in tart, for every command and network', async () => {
    const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-arguments-'))
    const lists: (readonly string[])[] = []
    const tart: Tart = {
      program: 'tart',
      command: (folder, words) => tart.inHome(path.join(folder, 'tart'), words),
      inHome: async (home, words) => {
        lists.push(words)
        const place = path.join(home, 'vms', words.at(-1) ?? '')
        if (words[0] === 'create') {
          await fs.mkdir(place, { recursive: true })
          await fs.writeFile(path.join(place, 'config.json'), '{"os":"linux"}')
          for (const file of ['disk.img', 'nvram.bin']) await fs.writeFile(path.join(place, file), '')
        }
        return { stdout: words[0] === 'get' ? '{"Running":true}' : '[]', stderr: '' } as never
      },
    }
    const inside = (name: string) => path.join(root, name)
    await fs.writeFile(inside('mac.json'), JSON.stringify({ os: 'darwin', cpuCount: 1, memorySize: 1 }))
    for (const file of ['disk', 'nvram']) await fs.writeFile(inside(file), 'x')
    const image = { name: 'a', digest: 'd', disk: inside('disk'), format: 'raw', virtualSizeBytes: 1 } as const
    const vm: VmSpec = {
      ...{ uid: 'u', name: 'a', architecture: 'arm64', cpu: 4, memoryMiB: 8_192, ip: '127.0.0.1' },
      ...{ ...machineDefaults, forwards: [], metadata: {}, iso: '/a.iso', systemSerial: 'NEW' },
      ...{ directories: [`a:${root}:ro`], nested: true, rosetta: 'r' },
      image: { ...image, boot: { kind: 'firmware' }, machine: { config: inside('mac.json'), nvram: inside('nvram') } },
      screen: { port: 1, width: 1_024, height: 768 },
    }
    const { machine: _, ...linux } = vm.image
    const signal = AbortSignal.timeout(60_000)
    const networks: readonly AppleNetwork[] = [
      { kind: 'shared' },
      { kind: 'sealed', allow: ['10.0.0.0/8'] },
      { kind: 'bridged', card: 'en0' },
    ]
    for (const [folder, spec] of Object.entries({ mac: vm, linux: { ...vm, image: linux } })) {
      await createMachine(inside(folder), spec, tart)
      await shapeMachine(inside(folder), spec, tart, signal)
      await growDisk(inside(folder), 3e9, tart)
      for (const network of networks) {
        const { name, options } = await launchOf(inside(folder), spec, network, [root])
        lists.push(['run', name, ...options])
      }
    }
    const folder = inside('mac')
    const name = (await readMachine(folder))?.name ?? ''
    await vmAddress(tart, folder, name)
    await isRunning(tart, folder, name, signal)
    await flushGuest(tart, folder, name, signal)
    await runInGuest(tart, folder, name, { script: 'true', signal })
    for (const end of ['stop', 'suspend', 'kill'] as const) {
      const child = spawn('sleep', ['0.3'])
      const process = { pid: child.pid ?? 0, startTime: (await startTimeOf(child.pid ?? 0)) ?? '' }
      const run: AppleRun = { version: 1, bootId: '', name, options: [], doors: { ip: '', forwards: [] }, process }
      if (end === 'kill') await endProcess(tart, folder, { run, process }, { graceSeconds: 0 })
      else await pauseForCopy(tart, folder, { run, process }, end)
    }
    await fs.mkdir(path.join(inside('home'), 'vms', 'a'), { recursive: true })
    await new Allowance(tart, { home: inside('home') }).left()
    const options = { ipsw: 'latest', disk: 30, unattended: true, 'allow-insecure': true }
    const creation = { options, reference: 'ghcr.io/team/macos:1', name }
    lists.push(tartWords.create('latest', creation), tartWords.push(creation), tartWords.delete(creation))
    lists.push(tartWords.ip(creation))
    assert.deepEqual(new Set(lists.map(([command]) => command)), new Set(Object.keys(tartCommands)), 'all commands')
    assert.deepEqual(lists.map(problemOf).filter(Boolean), [])
    const used = lists.flatMap((words) => ownWords(words).flatMap((word) => /^--?([a-z][a-z-]*)/.exec(word)?.[1] ?? []))
    const stated = Object.values(tartCommands).flatMap(({ uses }) => uses.split(' ').map((one) => one.replace('=', '')))
    assert.deepEqual(new Set(used), new Set(stated.filter(Boolean)), 'the table names no more than what is used')
    assert.ok((await fs.stat(tartFolder(folder, name))).isDirectory())
    await fs.rm(root, { recursive: true })
  })

  it('arguments of tart that the installed version lacks are named', () => {
    assert.deepEqual(missingInTart(dumpOf()), [])
    assert.deepEqual(
      missingInTart(dumpOf((command, option) => !(command === 'run' && option === 'suspendable') && option !== 'vnc')),
      ['run --suspendable'],
    )
    assert.ok(missingInTart('{"command":{"commandName":"tart","subcommands":[]}}').includes('suspend'))
    assert.throws(() => missingInTart('tart 2.35'))
  })
})
