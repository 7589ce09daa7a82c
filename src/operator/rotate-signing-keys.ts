// svc3 server rotate-signing-keys: a new key signs tokens. Written into the store, where every server sees it; with
// SQLite, the running server does it.
import { loadKeyring, takeKeySource } from '../auth/keyring.ts'
import { Secrets } from '../auth/secrets.ts'
import { loadSigningKeys, type Rotated } from '../auth/signing-keys.ts'
import { defineCommand } from '../cli/command.ts'
import { becomeOwner } from '../control-plane/data-folder.ts'
import { askServer } from '../control-plane/operator-request.ts'
import { addressOf, assertThere } from '../control-plane/store-place.ts'
import { systemClock } from '../platform/clock.ts'
import { openCollections } from '../store/records/collections.ts'
import { explaining, withStore } from './data.ts'
import { placeOf, placeOptions } from './options.ts'

const timeoutMs = 60_000

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
    { line: 'svc3 server rotate-signing-keys', does: 'A new key; nobody notices' },
    {
      line: 'svc3 server rotate-signing-keys --revoke',
      does: 'Everybody has to log in again, and service accounts need new tokens',
    },
  ],
  async run({ host }, { options }) {
    const { dataDir, storeAddress } = placeOf(host, options)
    becomeOwner(dataDir)
    const rotated = await explaining('the keys in use stay; try again', async () => {
      const address = await addressOf(dataDir, storeAddress)
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
  const others = older === 1 ? 'One older key stays' : `${older} older keys stay`
  return revoked > 0
    ? `Key ${kid} signs tokens from now on. Every earlier token is refused: log in again, and give service accounts new tokens.\n`
    : `Key ${kid} signs tokens from ${signsFrom} on. ${others} until the last of their tokens has ended.\n`
}
