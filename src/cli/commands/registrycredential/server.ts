// The SERVER argument of the regcred commands, checked by the service's own rule, so that a typo is reported at once.
import { parseRegistryServer } from '../../../rules/registry-server.ts'
import type { Argument } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'

export const serverArgument = {
  value: 'SERVER',
  description: 'address of the registry, <scheme>://<hostname>[:<port>]',
  required: true,
} as const satisfies Argument

/** `line`: the command for the address that was meant. */
export function checkServer(
  text: string,
  line?: (server: string) => string,
): { readonly server: string; readonly scheme: 'http' | 'https' } {
  const parsed = parseRegistryServer(text)
  if (parsed.ok) return parsed
  const { problem, hint, meant } = parsed
  throw new UsageError(problem, line && meant !== undefined ? `Run ${line(meant)}` : hint)
}
