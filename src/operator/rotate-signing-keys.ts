// svc3 server rotate-signing-keys: creates a key that signs tokens, in the store, where every server sees it. With
// SQLite, a running server creates it.
import { loadSigningKeys, type Rotated } from '../auth/signing-keys.ts'
import { defineCommand } from '../cli/command.ts'
import { becomeOwner } from '../control-plane/data-folder.ts'
import { askServer } from '../control-plane/operator-request.ts'
import { systemClock } from '../platform/clock.ts'
import { openCollections } from '../store/records/collections.ts'
import { explaining, openSecrets, withRecords } from './data.ts'
import { type DataLocation, dataLocationOf, dataOptions } from './options.ts'

const timeoutMs = 60_000

export const command = defineCommand({
  description:
    'Creates a new key that signs tokens. Every server uses it after a minute; tokens of older keys stay valid. Servers do\nthis every 90 days on their own.',
  ownSignals: true,
  arguments: {},
  options: {
    revoke: { type: 'boolean', description: 'Revoke the older keys and all existing tokens' },
    ...dataOptions,
  },
  examples: [
    { line: 'svc3 server rotate-signing-keys', does: 'Create a new key' },
    {
      line: 'svc3 server rotate-signing-keys --revoke',
      does: 'Revoke all tokens: users log in again, and service accounts need new tokens',
    },
  ],
  async run({ host }, { options }) {
    const data = dataLocationOf(host, options)
    becomeOwner(data.dataDir)
    const hint = 'The current keys stay in use; try again'
    host.stdout.write(reportOf(await explaining(hint, () => rotate(data, options.revoke))))
    return 0
  },
})

const rotate = (data: DataLocation, isRevoking: boolean): Promise<Rotated> =>
  withRecords(
    data,
    async (store) => {
      const secrets = await openSecrets(data.dataDir)
      await using collections = await openCollections(store)
      using keys = await loadSigningKeys(collections.signingKeys, secrets, systemClock)
      return await keys.rotate({ isRevoking })
    },
    () => askServer(data.dataDir, { name: 'signing-keys', isRevoking }, timeoutMs),
  )

function reportOf({ kid, signsFrom, older, revoked }: Rotated): string {
  const others = older === 1 ? 'One older key stays valid' : `${older} older keys stay valid`
  return revoked > 0
    ? `Key ${kid} signs tokens from now on. All earlier tokens are revoked: log in again, and create new tokens for service accounts.\n`
    : `Key ${kid} signs tokens from ${signsFrom} on. ${others} until the last of their tokens expires.\n`
}
