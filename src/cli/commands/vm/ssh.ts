// svc3 vm ssh

import childProcess from 'node:child_process'
import os from 'node:os'
import { ApiError } from '../../../api/errors.ts'
import { getVm, type Vm } from '../../../api/vms/vms.ts'
import { reachProblem } from '../../../rules/guest-reach.ts'
import { type Context, defineCommand, namespaced } from '../../command.ts'
import { readPassword } from '../../connect/password.ts'
import { Failure } from '../../line/usage.ts'
import { hasBooted, isNodeLost } from './parts/reasons.ts'
import { vmArgument } from './parts/vm-argument.ts'
import { offerPassword } from './reach/askpass.ts'
import { awaitGreeting } from './reach/greeting.ts'
import { knownHostsFile } from './reach/known-hosts.ts'
import { dialerFor } from './reach/reach.ts'
import { sshArguments } from './reach/ssh-line.ts'

export const command = defineCommand({
  description: 'Runs ssh through the service, so nodes need not be reachable. The exit code is that of ssh.',
  arguments: {
    ...vmArgument,
    command: {
      value: 'COMMAND',
      description: 'command to run instead of a shell',
      repeatable: true,
      afterDashes: true,
    },
  },
  options: {
    user: { type: 'string', short: 'u', value: 'USER', default: 'admin', description: 'User in the guest' },
    'password-stdin': { type: 'boolean', description: 'Read the password from standard input' },
    tty: { type: 'boolean', short: 't', description: 'Allocate a terminal for the command' },
    ...namespaced,
  },
  examples: [
    { line: 'svc3 vm ssh demo', does: 'Open a shell; ssh asks for the password if no key is accepted' },
    { line: 'svc3 vm ssh demo -- uname -a', does: 'Run one command' },
    { line: 'svc3 vm ssh demo -u ci --password-stdin -- df -h < password.txt', does: 'Run one command from a script' },
  ],
  async run(context, { args, options }) {
    const { host, signal } = context
    // ssh would run the proxy command and the askpass script without a POSIX shell.
    if (host.env.OS === 'Windows_NT') throw new Failure('svc3 vm ssh does not run on Windows', 'Run it in WSL')
    // On a terminal, ssh asks for the password itself, which is safer than passing it on.
    const hasPassword = options['password-stdin'] && !host.stdin.isTerminal
    const password = hasPassword ? await readPassword(context, '') : undefined
    const { client, namespace, sameTargetFlags } = await context.connect()
    const vm = await client.call(getVm, { params: { namespace, vm: args.vm }, signal })
    checkReachable(vm, sameTargetFlags)
    if (!hasBooted(vm) || isNodeLost(vm) || reachProblem(vm)) {
      // Waits before starting ssh, which would show no progress and only "connection timed out".
      const dial = dialerFor(context, { namespace, vm: vm.name, port: 'ssh' })
      const why = async () => reachProblem(await client.call(getVm, { params: { namespace, vm: vm.name }, signal }))
      const stream = await awaitGreeting(context, dial, { vm: vm.name, sameTargetFlags, why })
      stream.destroy()
    }
    const words = sshArguments({
      self: host.self,
      vm,
      namespace,
      user: options.user,
      // A revert creates a new disk with a new host key.
      knownHosts: knownHostsFile(host, `${vm.uid}.${vm.diskGeneration}`),
      hasPassword,
      wantsTerminal: options.tty,
      command: args.command,
    })
    if (password === undefined) return runSsh(context, words, {})
    await using askpass = await offerPassword(password)
    return await runSsh(context, words, askpass.env)
  },
})

/** States in which no guest will answer. ssh would report only that the connection was closed. */
const unreachableStates: readonly Vm['powerState'][] = ['pending', 'stopped', 'suspended', 'failed']

function checkReachable({ name, powerState }: Vm, sameTargetFlags: string): void {
  if (!unreachableStates.includes(powerState)) return
  const hint = `Run svc3 vm show ${name}${sameTargetFlags} to see its state`
  throw new ApiError('Conflict', `VM ${name} is ${powerState}; SSH cannot connect`, { hint })
}

const passedOn = ['SIGTERM', 'SIGHUP'] as const

/** Ctrl-C needs no forwarding, because the terminal sends it to ssh as well. */
function runSsh({ host }: Context, words: readonly string[], env: Readonly<Record<string, string>>): Promise<number> {
  // With askpass, standard input was the password, and must not reach the guest.
  const stdin = 'SSH_ASKPASS' in env ? 'ignore' : 'inherit'
  const child = childProcess.spawn('ssh', [...words], {
    stdio: [stdin, 'inherit', 'inherit'],
    env: { ...host.env, ...env },
  })
  const handlers = passedOn.map((name) => [name, () => void child.kill(name)] as const)
  for (const [name, handler] of handlers) process.once(name, handler)
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  child.once('error', (error: NodeJS.ErrnoException) =>
    reject(new Failure(`Cannot run ssh (${error.code})`, 'Install the OpenSSH client')),
  )
  child.once('exit', (code, signal) => {
    const { signals } = os.constants
    resolve(code ?? 128 + (signal === null ? 0 : signals[signal]))
  })
  return promise.finally(() => {
    for (const [name, handler] of handlers) process.off(name, handler)
  })
}
