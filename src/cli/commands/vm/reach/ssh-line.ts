// The arguments for the system's ssh to reach a VM through the service. They contain no secret.

interface SshLine {
  /** The words that start this program. */
  readonly self: readonly string[]
  readonly vm: { readonly name: string }
  readonly namespace: string
  readonly user: string
  /** Undefined: the key is not kept. */
  readonly knownHosts: string | undefined
  /** A password is given by askpass. */
  readonly hasPassword: boolean
  readonly wantsTerminal: boolean
  readonly command: readonly string[]
}

export function sshArguments(line: SshLine): string[] {
  const { self, vm, namespace, user, knownHosts, hasPassword, wantsTerminal, command } = line
  const proxy = [...self, 'vm', 'connect', vm.name, '--port', 'ssh', '--namespace', namespace, '--quiet']
  const options = {
    ProxyCommand: proxyText(proxy),
    // Prompts for passwords name it, and the file of known hosts is of this VM alone.
    HostKeyAlias: vm.name,
    UserKnownHostsFile: configText(knownHosts ?? '/dev/null'),
    GlobalKnownHostsFile: '/dev/null',
    StrictHostKeyChecking: 'accept-new',
    // A connection that is shared by name would lead to a VM that is gone.
    ControlPath: 'none',
    LogLevel: 'ERROR',
    ...(hasPassword && {
      // Askpass would be asked for the passphrases of keys, too, and the same wrong password is not worth three tries.
      PubkeyAuthentication: 'no',
      PreferredAuthentications: 'password,keyboard-interactive',
      NumberOfPasswordPrompts: '1',
    }),
  }
  return [
    ...Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`]),
    ...(wantsTerminal ? ['-t'] : []),
    '-l',
    user,
    vm.name,
    // ssh goes on reading options after the host.
    ...(command.length > 0 ? ['--', ...command] : []),
  ]
}

/** ssh puts it before a shell, and reads % as its own. */
const proxyText = (words: readonly string[]): string => words.map(shellWord).join(' ').replaceAll('%', '%%')

/** A value of ssh's configuration in which blanks are no separators. */
const configText = (value: string): string => `"${value.replaceAll('%', '%%')}"`

/** As a shell reads it: one word, nothing in it means anything. */
export const shellWord = (word: string): string =>
  /^[\w./:=@-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
