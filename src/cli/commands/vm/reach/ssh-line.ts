// The arguments for the system's ssh to reach a VM through the service. They contain no secret.
import { quoted } from '../../../../rules/shell-word.ts'

interface SshLine {
  /** The command that starts this program. */
  readonly self: readonly string[]
  readonly vm: { readonly name: string }
  readonly namespace: string
  readonly user: string
  /** Undefined if the host key is not stored. */
  readonly knownHosts: string | undefined
  /** Whether askpass provides a password. */
  readonly hasPassword: boolean
  readonly wantsTerminal: boolean
  readonly command: readonly string[]
}

export function sshArguments(line: SshLine): string[] {
  const { self, vm, namespace, user, knownHosts, hasPassword, wantsTerminal, command } = line
  const proxy = [...self, 'vm', 'connect', vm.name, '--port', 'ssh', '--namespace', namespace, '--quiet']
  const options = {
    ProxyCommand: proxyText(proxy),
    // Password prompts show this name. The file of known hosts has only this VM.
    HostKeyAlias: vm.name,
    UserKnownHostsFile: configText(knownHosts ?? '/dev/null'),
    GlobalKnownHostsFile: '/dev/null',
    StrictHostKeyChecking: 'accept-new',
    // A shared connection would be found by the name of the VM, and could lead to a deleted VM with the same name.
    ControlPath: 'none',
    LogLevel: 'ERROR',
    ...(hasPassword && {
      // ssh would use askpass for passphrases of keys as well, and try a wrong password three times.
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
    // ssh also reads options after the host.
    ...(command.length > 0 ? ['--', ...command] : []),
  ]
}

/** ssh expands % in this text and passes it to a shell. */
const proxyText = (words: readonly string[]): string => words.map(quoted).join(' ').replaceAll('%', '%%')

/** Quotes a value of ssh's configuration. */
const configText = (value: string): string => `"${value.replaceAll('%', '%%')}"`
