// svc3 server users reset
import { defineCommand } from '../../../command.ts'
import { placeOf, placeOptions } from '../options.ts'
import { emailArgument, newPassword, passwordOption } from './options.ts'

export const command = defineCommand({
  description: 'Gives a user of the built-in identity provider a new password, and ends their logins.',
  arguments: { email: emailArgument },
  options: { ...passwordOption, ...placeOptions },
  examples: [{ line: 'svc3 server users reset ada@example.com', does: 'A new password; asks for it' }],
  async run(context, { args, options }) {
    const password = await newPassword(context, options['password-stdin'])
    const place = placeOf(context.host, options)
    return context.host.programs.users({ action: 'reset', ...place, email: args.email, password })
  },
})
