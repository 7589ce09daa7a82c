// svc3 server users reset
import { defineCommand } from '../../../command.ts'
import { dataOption, emailArgument, folderOf, newPassword, passwordOption } from './options.ts'

export const command = defineCommand({
  description: 'Gives a user of the built-in identity provider a new password, and ends their logins.',
  arguments: { email: emailArgument },
  options: { ...passwordOption, ...dataOption },
  examples: [{ line: 'svc3 server users reset ada@example.com', does: 'A new password; asks for it' }],
  async run(context, { args, options }) {
    const password = await newPassword(context, options['password-stdin'])
    const dataDir = folderOf(context, options.data)
    return context.host.programs.users({ action: 'reset', dataDir, email: args.email, password })
  },
})
