// What the commands about users of the built-in identity provider share.
import type { Argument, Options } from '../../../command.ts'
import { readPassword } from '../../../connect/password.ts'
import type { Context } from '../../../context.ts'
import { UsageError } from '../../../line/usage.ts'

export const emailArgument = {
  value: 'EMAIL',
  description: 'e-mail address of the user',
  required: true,
} as const satisfies Argument

export const passwordOption = {
  'password-stdin': { type: 'boolean', description: 'Read the password from standard input' },
} as const satisfies Options

/** Asked for twice on a terminal, because nobody sees what is typed. */
export async function newPassword(context: Context, fromStdin: boolean): Promise<string> {
  const { isTerminal } = context.host.stdin
  if (!isTerminal && !fromStdin)
    throw new UsageError('the password is missing', 'use --password-stdin to read it from a pipe or a file')
  const password = await readPassword(context, 'New password: ')
  if (isTerminal && (await readPassword(context, 'The same again: ')) !== password)
    throw new UsageError('the two passwords differ', 'nothing was changed; try again')
  return password
}
