// svc3 server rotate-keys
import { defineCommand } from '../../command.ts'
import { placeOf, placeOptions } from './options.ts'

export const command = defineCommand({
  description:
    'Makes a new key that signs tokens. Every server knows it at once and signs with it after a minute; tokens of older\nkeys stay good. A server does this by itself every 90 days.',
  ownSignals: true,
  arguments: {},
  options: {
    revoke: { type: 'boolean', description: 'End the older keys now, and with them every token that there is' },
    ...placeOptions,
  },
  examples: [
    { line: 'svc3 server rotate-keys', does: 'A new key; nobody notices' },
    {
      line: 'svc3 server rotate-keys --revoke',
      does: 'Everybody has to log in again, and service accounts need new tokens',
    },
  ],
  run: ({ host }, { options }) => host.programs.rotateKeys({ ...placeOf(host, options), isRevoking: options.revoke }),
})
