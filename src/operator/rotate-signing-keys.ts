// `svc3 server rotate-keys`: a new key signs tokens. Written into the store, where every server sees it; with a server on
// SQLite, that server does it.
import { KeyringError, loadKeyring, takeKeySource } from '../auth/keyring.ts'
import { SealError } from '../auth/seal.ts'
import { Secrets } from '../auth/secrets.ts'
import { loadSigningKeys, type Rotated } from '../auth/signing-keys.ts'
import type { RotateKeysOptions } from '../cli/programs.ts'
import { addressOf, assertThere } from '../control-plane/store-place.ts'
import { systemClock } from '../platform/clock.ts'
import { openStore } from '../store/open.ts'
import { openCollections } from '../store/records/collections.ts'
import { isFault, StoreError } from '../store/store.ts'
import { assertUsable } from '../store/store-state.ts'
import { becomeOwner } from './become-owner.ts'
import { askServer, NotDoneError } from './operator-request.ts'

const patienceMs = 60_000

export async function runRotateKeys({ dataDir, storeAddress, isRevoking }: RotateKeysOptions): Promise<number> {
  becomeOwner(dataDir)
  try {
    const address = await addressOf(dataDir, storeAddress)
    assertThere(dataDir, address)
    report(await rotate(dataDir, address, isRevoking))
    return 0
  } catch (error) {
    const isKnown = [KeyringError, SealError, StoreError, NotDoneError].some((kind) => error instanceof kind)
    if (!isKnown) throw error
    process.stderr.write(`svc3: ${(error as Error).message}\nsvc3: the keys in use stay; try again\n`)
    return 1
  }
}

async function rotate(dataDir: string, address: string, isRevoking: boolean): Promise<Rotated> {
  const store = await openStore(address).catch((error: unknown) => {
    if (isFault(error, 'Locked')) return undefined
    throw error
  })
  if (!store) return askServer(dataDir, { name: 'signing-keys', isRevoking }, patienceMs)
  try {
    await assertUsable(store)
    const secrets = new Secrets(await loadKeyring(takeKeySource(dataDir, { ...process.env }), false))
    await using collections = await openCollections(store)
    using keys = await loadSigningKeys(collections.signingKeys, secrets, systemClock)
    return await keys.rotate({ isRevoking })
  } finally {
    await store.close()
  }
}

function report({ kid, signsFrom, older, revoked }: Rotated): void {
  const others = older === 1 ? 'One older key stays' : `${older} older keys stay`
  process.stdout.write(
    revoked > 0
      ? `Key ${kid} signs tokens from now on. Every earlier token is refused: log in again, and give service accounts new tokens.\n`
      : `Key ${kid} signs tokens from ${signsFrom} on. ${others} until the last of their tokens has ended.\n`,
  )
}
