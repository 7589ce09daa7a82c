// svc3 server users list
import { defineCommand } from '../../../command.ts'
import { placeOf, placeOptions } from '../options.ts'

export const command = defineCommand({
  description: 'Lists the users of the built-in identity provider, one a line: e-mail, role, since when.',
  arguments: {},
  options: { ...placeOptions },
  examples: [{ line: 'svc3 server users list', does: 'Who can log in' }],
  run: (context, { options }) => context.host.programs.users({ action: 'list', ...placeOf(context.host, options) }),
})
