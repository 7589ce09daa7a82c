// svc3 server forget
import { defineCommand } from '../../command.ts'
import { placeOf, placeOptions } from './options.ts'

export const command = defineCommand({
  description:
    'Gives up a server that will not come back. What it alone had of images is not waited for any more: deployments that\nneed it fail, and say so. One that is alive is refused; one that comes back all the same is known again.',
  ownSignals: true,
  arguments: {
    server: { value: 'SERVER', description: 'the server, as the others name it: HOST:PORT', required: true },
  },
  options: placeOptions,
  examples: [{ line: 'svc3 server forget 10.0.0.12:8443', does: 'Its host is scrapped' }],
  run: ({ host }, { args, options }) => host.programs.forgetServer({ ...placeOf(host, options), name: args.server }),
})
