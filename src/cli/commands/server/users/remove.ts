// svc3 server users remove
import { defineCommand } from '../../../command.ts'
import { dataOption, emailArgument, folderOf } from './options.ts'

export const command = defineCommand({
  description: 'Removes a user from the built-in identity provider. Their tokens are refused within seconds.',
  arguments: { email: emailArgument },
  options: { ...dataOption },
  examples: [{ line: 'svc3 server users remove ada@example.com', does: 'Remove a user and all of their tokens' }],
  run: (context, { args, options }) =>
    context.host.programs.users({ action: 'remove', dataDir: folderOf(context, options.data), email: args.email }),
})
