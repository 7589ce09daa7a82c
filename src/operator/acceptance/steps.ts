// The steps of an acceptance run as a table, and what carries them out in order. A step returns what it saw, and throws the
// reason of its failure.
import { once } from 'node:events'
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { pipeline } from 'node:stream'
import type { Node } from '../../api/nodes/nodes.ts'
import type { Vm } from '../../api/vms/vms.ts'
import { exec } from '../../platform/exec.ts'
import { everyProcess } from '../../platform/processes.ts'
import { reasonOf } from '../../platform/reason.ts'
import { isGuestReachable } from '../../rules/guest-reach.ts'
import { killNow, type Lab, until } from './lab.ts'
import type { StepResult } from './report.ts'
import { pressKeys } from './screen.ts'

export interface Trial {
  readonly lab: Lab
  readonly options: { image: string; cpu: number; memory: number; 'second-volume'?: string | undefined }
  readonly registry: URL | undefined
  node?: Node
}

type Run = (tools: Tools) => Promise<string>

/** `needs` are steps that must have passed. */
export const step = (name: string, minutes: number, needs: string[], run: Run) => ({ name, minutes, needs, run })

/** Thrown by steps that cannot run here. */
export class Skipped extends Error {
  override readonly name = 'Skipped'
}

type Tools = ReturnType<typeof toolsOf>

/** What a step works with. All of it ends with the signal. */
function toolsOf(trial: Trial, signal: AbortSignal) {
  const { lab, options } = trial
  const svc3 = (...words: string[]) => lab.svc3(words, signal)
  const vm = (name: string) => lab.json<Vm>(['vm', 'show', name], signal)
  const deploy = (name: string, image: string, ...more: string[]) =>
    svc3('vm', 'deploy', name, '-i', image, '-c', `${options.cpu}`, '-m', `${options.memory}`, ...more)
  const remove = (name: string) => lab.svc3(['vm', 'delete', name, '--yes'], AbortSignal.timeout(120_000))
  const tools = {
    ...{ trial, lab, signal, svc3, vm, deploy, remove },
    /** Waits for SSH, and until the command succeeds. */
    ssh: (name: string, command: string) =>
      until(signal, () =>
        lab.svc3(['vm', 'ssh', name, '-u', 'admin', '--password-stdin', '--', command], signal, 'admin'),
      ),
    vmWhere: (name: string, isSo: (vm: Vm) => boolean) =>
      until(signal, async () => {
        const found = await vm(name)
        if (isSo(found)) return found
        throw new Error(`VM ${name} is ${found.powerState}: ${found.conditions.at(-1)?.message ?? ''}`)
      }),
    /** tart's home of a VM, and its name there (docs/reference/drivers.md). */
    async tartOf(name: string): Promise<[home: string, name: string]> {
      const home = lab.at('node', 'vms', (await vm(name)).uid, 'tart')
      const found = (await fs.readdir(path.join(home, 'vms'))).find((each) => each.startsWith('svc3-'))
      if (found === undefined) throw new Error(`${home} has no VM`)
      return [home, found]
    },
    tart: (home: string, ...words: string[]) => lab.tart(home, words, signal),
    address: (home: string, name: string) => until(signal, () => lab.tart(home, ['ip', name], signal)),
    async again(times = 1): Promise<string> {
      for (let round = 0; round < times; round++) {
        await deploy('again', 'acceptance')
        await remove('again')
      }
      return `${times} deployed and deleted`
    },
    async againWith(agent: Parameters<Lab['startAgent']>[1]): Promise<string> {
      try {
        await lab.startAgent(signal, agent)
        return await tools.again()
      } finally {
        await lab.startAgent(AbortSignal.timeout(60_000))
      }
    },
  }
  return tools
}

/** More than the recovery partition, which otherwise stays where it is. */
const growGib = 8
/** `svc3 agent install` closes ports from here on to other hosts. */
const firstScreenPort = 49_152
const marker = 'svc3-acceptance'
/** Differs after each boot of a guest. */
const bootMark = 'sysctl -n kern.bootsessionuuid 2> /dev/null || cat /proc/sys/kernel/random/boot_id'
const shutdown = '(sleep 1; shutdown -h now || poweroff) > /dev/null 2>&1 &'

export const steps = [
  step('agent', 3, [], async ({ lab, signal, trial }) => {
    trial.node = await lab.startAgent(signal)
    if (trial.node.noMacos !== undefined) throw new Error(trial.node.noMacos)
    return lab.hasDaemon ? 'By launchd' : 'As a child process'
  }),
  step('host checks', 1, ['agent'], async ({ trial: { node } }) => {
    const { ok = [], warning = [], problem = [] } = Object.groupBy(node?.checks ?? [], ({ result }) => result)
    if (problem.length > 0) throw new Error(problem.map(({ check, found }) => `${check}: ${found}`).join('; '))
    return `${warning.length} warnings, ${ok.length} passed`
  }),
  // The image may have to come over a slow line.
  step('deploy', 120, ['agent'], async ({ lab, deploy, trial, vm }) => {
    await fs.writeFile(lab.at('first-boot'), `#!/bin/sh\necho first boot > /var/tmp/${marker}\n`)
    const data = ['--metadata', `${marker}=metadata`, '--userdata', lab.at('first-boot')]
    await deploy('one', trial.options.image, '--timeout', '120', ...data)
    return (await vm('one')).warning ?? 'Running'
  }),
  step('address and SSH', 5, ['deploy'], async ({ vmWhere, ssh }) => {
    await vmWhere('one', isGuestReachable)
    return await ssh('one', `echo one > ${marker}; sync; uname -srm`)
  }),
  step('tart exec', 3, ['address and SSH'], async ({ tart, tartOf, signal }) => {
    const [home, name] = await tartOf('one')
    const bytes = Buffer.byteLength(path.join(home, 'vms', name, 'control.sock'))
    const socket = `the path of its socket has ${bytes} bytes, of which macOS allows 103`
    await until(signal, () => tart(home, 'exec', name, 'sudo', '-n', 'true')).catch((error) => {
      throw new Error(`${reasonOf(error)}; ${socket}`)
    })
    return `It works; ${socket}`
  }),
  step('metadata and first-boot script', 8, ['address and SSH'], async ({ ssh }) => {
    if ((await ssh('one', 'uname')) !== 'Darwin') throw new Skipped('Only macOS mounts the folder by itself')
    const text = await ssh('one', `cat "/Volumes/My Shared Files/svc3/metadata/${marker}" && cat /var/tmp/${marker}`)
    return `The guest has both: ${text}`
  }),
  step('screen and a key', 1, ['address and SSH'], async ({ vm, signal }) => {
    const { ip = '', vnc = 0 } = await vm('one')
    return await pressKeys(ip, vnc, signal)
  }),
  step('ports of the screen', 1, ['deploy'], async ({ signal }) => {
    const words = ['+c', '0', '-nP', '-a', '-u', String(process.getuid?.()), '-iTCP', '-sTCP:LISTEN', '-Fcn']
    const { stdout } = await exec('lsof', words, { signal })
    // A line c… names a program, and each n… below it an address.
    const programs = stdout.split(/^(?=c)/m).filter((text) => /^c(tart|com\.apple\.Virt|qemu)/i.test(text))
    const addresses = programs.flatMap((text) => text.match(/(?<=^n).*/gm) ?? [])
    const open = addresses.filter((one) => !/^(127\.|\[::1\]|localhost)/.test(one))
    const uncovered = open.filter((one) => Number(/:(\d{1,5})$/.exec(one)?.[1]) < firstScreenPort)
    if (addresses.length === 0) throw new Error('lsof shows no port of a VM')
    if (uncovered.length > 0) throw new Error(`The rule of svc3 agent install does not close ${uncovered.join(', ')}`)
    if (open.length === 0) return `${addresses.length} on loopback only`
    return `Without the rule of svc3 agent install, the network reaches ${open.join(', ')}`
  }),
  step('save', 15, ['address and SSH'], async ({ ssh, svc3, vm }) => {
    const before = await ssh('one', bootMark)
    await svc3('vm', 'save', 'one', 'acceptance', '--wait')
    if ((await ssh('one', bootMark)) !== before) throw new Error('The save restarted the VM')
    return (await vm('one')).warning ?? 'The VM kept running'
  }),
  step('two VMs', 8, ['save'], async ({ deploy, ssh, address, tartOf }) => {
    await deploy('two', 'acceptance')
    const saved = await ssh('two', `cat ${marker}; echo two > ${marker}; sync`)
    const addresses = new Set<string>()
    for (const name of ['one', 'two']) {
      addresses.add(await address(...(await tartOf(name))))
      const text = await ssh(name, `cat ${marker}`)
      if (text !== name) throw new Error(`SSH to VM ${name} reached VM ${text}`)
    }
    if (addresses.size < 2 || saved !== 'one') throw new Error(`${addresses.size} address, and the file has "${saved}"`)
    return 'A deployed save has its file; the addresses differ, and SSH reaches the right VM'
  }),
  step('a third VM', 3, ['two VMs'], async ({ deploy, remove }) => {
    const answer = await deploy('three', 'acceptance', '--timeout', '1').catch(reasonOf)
    if (/limit of \d/.test(answer)) return answer
    await remove('three').catch(() => undefined)
    throw new Error(`A third VM did not wait for Apple's limit: ${answer}`)
  }),
  step('stop from inside', 3, ['two VMs'], async ({ ssh, vmWhere, remove }) => {
    await ssh('two', `sudo -n sh -c '${shutdown}' || sh -c '${shutdown}'`)
    const { powerState } = await vmWhere('two', (vm) => vm.powerState !== 'running')
    await remove('two')
    if (powerState !== 'stopped') throw new Error(`The VM was ${powerState}`)
    return 'The VM was stopped'
  }),
  step('resize', 10, ['address and SSH'], async ({ ssh, svc3, vm }) => {
    const kibibytes = async () => Number(/ (\d+) /.exec(await ssh('one', 'df -k / | tail -1'))?.[1])
    const before = await kibibytes()
    await svc3('vm', 'resize', 'one', String(((await vm('one')).diskGb ?? 0) + growGib))
    const grownGib = ((await kibibytes()) - before) / 2 ** 20
    const text = `The file system grew by ${grownGib.toFixed(1)} of ${growGib} GiB`
    if (grownGib < growGib * 0.9) throw new Error(`${text}. ${(await vm('one')).warning ?? ''}`)
    return text
  }),
  step('push, and pull by tart', 40, ['deploy'], async ({ trial: { registry }, lab, svc3, tart, address }) => {
    if (!registry) throw new Skipped('No --registry')
    const reference = `${registry.host}${registry.pathname}/${marker}:latest`
    await svc3('vm', 'push', 'one', reference, '--format', 'tart', '--wait')
    const [home, name] = [lab.at('tart'), `${marker}-${process.pid}`]
    const plain = registry.protocol === 'http:' ? ['--insecure'] : []
    await fs.mkdir(home)
    await tart(home, 'pull', reference, ...plain)
    await tart(home, 'clone', reference, name, ...plain)
    // By the folder, cleaning up finds it.
    const run = tart(home, 'run', name, '--no-graphics', `--dir=svc3:${home}:ro`)
    await Promise.race([address(home, name), run])
    await tart(home, 'stop', name)
    await run.catch(() => undefined)
    return 'tart pulled, cloned and ran it'
  }),
  step('kill -9 of tart', 5, ['save'], async ({ tartOf, vmWhere, remove, again }) => {
    const [, name] = await tartOf('one')
    // The shell around tart records how it ended.
    const isTart = (words: readonly string[]) => words.includes('run') && words.includes(name) && !words.includes('-c')
    for (const { pid, words } of await everyProcess()) if (isTart(words)) await killNow(pid)
    const { powerState } = await vmWhere('one', (vm) => vm.powerState !== 'running')
    await remove('one')
    await again()
    return `The VM was ${powerState}, and another started at once`
  }),
  step('ten VMs', 15, ['save'], ({ again }) => again(10)),
  step('server on the LAN', 5, ['save'], async ({ lab, againWith }) => {
    const all = Object.values(os.networkInterfaces()).flat()
    const host = all.find((one) => one?.family === 'IPv4' && !one.internal)?.address
    if (host === undefined) throw new Skipped('This host has no address besides loopback')
    const { hostname, port } = new URL(lab.url)
    // The server speaks plain HTTP, so it stays on loopback. Packets to this address do not leave the host.
    await using server = net.createServer((client) =>
      pipeline(client, net.connect(Number(port), hostname), client, () => undefined),
    )
    await once(server.listen(0, host), 'listening')
    return await againWith({ url: `http://${host}:${(server.address() as net.AddressInfo).port}` })
  }),
  step('images on a second volume', 10, ['save'], async ({ trial: { options }, againWith }) => {
    if (options['second-volume'] === undefined) throw new Skipped('No --second-volume')
    const images = await fs.mkdtemp(path.join(options['second-volume'], `${marker}-`))
    return await againWith({ images }).finally(() => fs.rm(images, { recursive: true }))
  }),
]

export const stepsAfterReboot = [
  step('after a reboot', 10, [], async ({ lab, signal, trial, again }) => {
    trial.node = await (lab.hasDaemon ? lab.nodeReady(signal) : lab.startAgent(signal))
    await again()
    return `A VM started; ${trial.node.checks?.find(({ check }) => check === 'login session')?.found}`
  }),
]

/** Carries steps out one after the other. A failure skips only the steps that need the failed one. */
export async function runSteps(
  table: typeof steps,
  trial: Trial,
  signal: AbortSignal,
  onResult: (result: StepResult) => void,
): Promise<readonly StepResult[]> {
  const results: StepResult[] = []
  for (const { name, needs, minutes, run } of table) {
    const missing = needs.find((need) => results.find((one) => one.step === need)?.result !== 'passed')
    const reason = signal.aborted ? 'Interrupted' : missing && `Step "${missing}" did not pass`
    const startMs = performance.now()
    let outcome: Pick<StepResult, 'result' | 'text'>
    try {
      if (reason !== undefined) throw new Skipped(reason)
      const tools = toolsOf(trial, AbortSignal.any([signal, AbortSignal.timeout(minutes * 60_000)]))
      outcome = { result: 'passed', text: await run(tools) }
    } catch (error) {
      outcome = { result: error instanceof Skipped ? 'skipped' : 'failed', text: reasonOf(error) }
    }
    const result = { step: name, ...outcome, seconds: Math.round((performance.now() - startMs) / 1_000) }
    results.push(result)
    onResult(result)
  }
  return results
}
