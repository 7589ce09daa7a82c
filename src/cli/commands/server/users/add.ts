// svc3 server users add
import { defineCommand } from '../../../command.ts'
import { placeOf, placeOptions } from '../options.ts'
import { emailArgument, newPassword, passwordOption } from './options.ts'

export const command = defineCommand({
  description:
    'Adds a user to the built-in identity provider, on the server’s own machine. A running server knows them at once.',
  arguments: { email: emailArgument },
  options: {
    admin: { type: 'boolean', description: 'Make them an administrator of the cluster' },
    ...passwordOption,
    ...placeOptions,
  },
  examples: [
    { line: 'svc3 server users add ada@example.com', does: 'A user; asks for the password' },
    {
      line: 'svc3 server users add grace@example.com --admin --password-stdin < password.txt',
      does: 'An administrator, with the password from a file',
    },
  ],
  async run(context, { args, options }) {
    const password = await newPassword(context, options['password-stdin'])
    const place = placeOf(context.host, options)
    return context.host.programs.users({ action: 'add', ...place, email: args.email, admin: options.admin, password })
  },
})
