// svc3 vm ssh
import childProcess from 'node:child_process'
import os from 'node:os'
import { ApiError } from '../../../api/errors.ts'
import { getVm, type Vm } from '../../../api/vms/vms.ts'
import { type Context, defineCommand, namespaced } from '../../command.ts'
import { readPassword } from '../../connect/password.ts'
import { Failure } from '../../line/usage.ts'
import { vmArgument } from './parts/vm-argument.ts'
import { knownHostsFile } from './reach/known-hosts.ts'
import { sshArguments } from './reach/ssh-line.ts'

export const command = defineCommand({
  description: 'Runs ssh through the service, so that no node needs to be reachable. Its exit code is that of ssh.',
  arguments: {
    ...vmArgument,
    command: { value: 'COMMAND', description: 'what to run in place of a shell', repeatable: true, afterDashes: true },
  },
  options: {
    user: { type: 'string', short: 'u', value: 'USER', default: 'admin', description: 'User in the guest' },
    'password-stdin': { type: 'boolean', description: 'Read the password from standard input' },
    tty: { type: 'boolean', short: 't', description: 'A terminal for the command, too' },
    ...namespaced,
  },
  examples: [
    { line: 'svc3 vm ssh demo', does: 'A shell; ssh asks for the password when no key is accepted' },
    { line: 'svc3 vm ssh demo -- uname -a', does: 'One command' },
    { line: 'svc3 vm ssh demo -u ci --password-stdin -- df -h < password.txt', does: 'The same from a script' },
  ],
  async run(context, { args, options }) {
    const { host, signal } = context
    // On a terminal ssh asks by itself, which is safer than any way of ours to hand a password over.
    const hasPassword = options['password-stdin'] && !host.stdin.isTerminal
    const password = hasPassword ? await readPassword(context, '') : undefined
    const { client, namespace } = await context.connect()
    const vm = await client.call(getVm, { params: { namespace, vm: args.vm }, signal })
    mustAnswer(vm)
    const words = sshArguments({
      self: host.self,
      vm,
      namespace,
      user: options.user,
      knownHosts: knownHostsFile(host, vm.uid),
      hasPassword,
      wantsTerminal: options.tty,
      command: args.command,
    })
    if (password === undefined) return runSsh(context, words, {})
    const { offerPassword } = await import('./reach/askpass.ts')
    await using askpass = await offerPassword(password)
    return await runSsh(context, words, askpass.env)
  },
})

/** One that starts is waited for; of these, ssh would only say that the connection was closed. */
const mute: readonly Vm['powerState'][] = ['pending', 'stopped', 'suspended', 'failed']

function mustAnswer({ name, powerState }: Vm): void {
  if (!mute.includes(powerState)) return
  const hint = `"svc3 vm list ${name} -o wide" shows it`
  throw new ApiError('Conflict', `vm "${name}" is ${powerState}: nobody answers there`, { hint })
}

const passedOn = ['SIGTERM', 'SIGHUP'] as const

/** Ctrl-C reaches ssh by itself: the terminal sends it to both. */
function runSsh({ host }: Context, words: readonly string[], env: Readonly<Record<string, string>>): Promise<number> {
  // Standard input was the password, then; what is left of it is not for the guest.
  const stdin = 'SSH_ASKPASS' in env ? 'ignore' : 'inherit'
  const child = childProcess.spawn('ssh', [...words], {
    stdio: [stdin, 'inherit', 'inherit'],
    env: { ...host.env, ...env },
  })
  const handlers = passedOn.map((name) => [name, () => void child.kill(name)] as const)
  for (const [name, handler] of handlers) process.once(name, handler)
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  child.once('error', (error: NodeJS.ErrnoException) =>
    reject(new Failure(`cannot run ssh (${error.code})`, 'install the OpenSSH client: it is the program "ssh"')),
  )
  child.once('exit', (code, signal) => {
    const { signals } = os.constants
    resolve(code ?? 128 + (signal === null ? 0 : signals[signal]))
  })
  return promise.finally(() => {
    for (const [name, handler] of handlers) process.off(name, handler)
  })
}
