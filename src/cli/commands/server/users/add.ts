// svc3 server users add
import { defineCommand } from '../../../command.ts'
import { dataOption, emailArgument, folderOf, newPassword, passwordOption } from './options.ts'

export const command = defineCommand({
  description:
    'Adds a user to the built-in identity provider, on the server’s own machine. A running server knows them at once.',
  arguments: { email: emailArgument },
  options: {
    admin: { type: 'boolean', description: 'Make them an administrator of the cluster' },
    ...passwordOption,
    ...dataOption,
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
    const dataDir = folderOf(context, options.data)
    return context.host.programs.users({ action: 'add', dataDir, email: args.email, admin: options.admin, password })
  },
})
