// svc3 server users remove
import { defineCommand } from '../../../command.ts'
import { placeOf, placeOptions } from '../options.ts'
import { emailArgument } from './options.ts'

export const command = defineCommand({
  description: 'Removes a user from the built-in identity provider. Their tokens are refused within seconds.',
  arguments: { email: emailArgument },
  options: { ...placeOptions },
  examples: [{ line: 'svc3 server users remove ada@example.com', does: 'Remove a user and all of their tokens' }],
  run: (context, { args, options }) =>
    context.host.programs.users({ action: 'remove', ...placeOf(context.host, options), email: args.email }),
})
