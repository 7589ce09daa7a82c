// svc3 server rotate-signing-keys: a new key signs tokens. Written into the store, where every server sees it; with
// SQLite, the running server does it.
import { loadKeyring, takeKeySource } from '../auth/keyring.ts'
import { Secrets } from '../auth/secrets.ts'
import { loadSigningKeys, type Rotated } from '../auth/signing-keys.ts'
import { defineCommand } from '../cli/command.ts'
import { becomeOwner } from '../control-plane/data-folder.ts'
import { askServer } from '../control-plane/operator-request.ts'
import { assertThere, storeAddressFor } from '../control-plane/store-place.ts'
import { systemClock } from '../platform/clock.ts'
import { openCollections } from '../store/records/collections.ts'
import { explaining, withStore } from './data.ts'
import { dataPlaceOf, placeOptions } from './options.ts'

const timeoutMs = 60_000

export const command = defineCommand({
  description:
    'Creates a new key that signs tokens. Every server uses it after a minute; tokens of older keys stay valid. Servers do\nthis every 90 days on their own.',
  ownSignals: true,
  arguments: {},
  options: {
    revoke: { type: 'boolean', description: 'Revoke the older keys and all existing tokens' },
    ...placeOptions,
  },
  examples: [
    { line: 'svc3 server rotate-signing-keys', does: 'Create a new key' },
    {
      line: 'svc3 server rotate-signing-keys --revoke',
      does: 'Revoke all tokens: users log in again, and service accounts need new tokens',
    },
  ],
  async run({ host }, { options }) {
    const { dataDir, storeAddress } = dataPlaceOf(host, options)
    becomeOwner(dataDir)
    const rotated = await explaining('The current keys stay in use; try again', async () => {
      const address = await storeAddressFor(dataDir, storeAddress)
      assertThere(dataDir, address)
      return rotate(dataDir, address, options.revoke)
    })
    host.stdout.write(reportOf(rotated))
    return 0
  },
})

const rotate = (dataDir: string, address: string, isRevoking: boolean): Promise<Rotated> =>
  withStore(
    address,
    async (store) => {
      const secrets = new Secrets(await loadKeyring(takeKeySource(dataDir, { ...process.env }), false))
      await using collections = await openCollections(store)
      using keys = await loadSigningKeys(collections.signingKeys, secrets, systemClock)
      return await keys.rotate({ isRevoking })
    },
    () => askServer(dataDir, { name: 'signing-keys', isRevoking }, timeoutMs),
  )

function reportOf({ kid, signsFrom, older, revoked }: Rotated): string {
  const others = older === 1 ? 'One older key stays valid' : `${older} older keys stay valid`
  return revoked > 0
    ? `Key ${kid} signs tokens from now on. All earlier tokens are revoked: log in again, and create new tokens for service accounts.\n`
    : `Key ${kid} signs tokens from ${signsFrom} on. ${others} until the last of their tokens expires.\n`
}
