// svc3 server rotate-master-key: activates a new master key, reseals everything, drops the old one; in the running
// server if there is one. A crash leaves a key ring that opens everything, and the next start finishes.
import fs from 'node:fs'
import { takeKeySource } from '../auth/keyring.ts'
import { defineCommand } from '../cli/command.ts'
import { dataDir as dataDirOf } from '../cli/connect/connection.ts'
import { Failure } from '../cli/line/usage.ts'
import { becomeOwner } from '../control-plane/data-folder.ts'
import { askServer } from '../control-plane/operator-request.ts'
import { notOurs, type Rotation, rotateKeyFile } from '../control-plane/reseal.ts'
import { databaseIn } from '../control-plane/store-place.ts'
import { readFileIfPresent } from '../platform/files.ts'
import { withLockFile } from '../platform/lock-file.ts'
import { openCollections } from '../store/records/collections.ts'
import { explaining, openSecrets, withRecords } from './data.ts'
import { dataOptions } from './options.ts'

const timeoutMs = 60_000

export const command = defineCommand({
  description: 'Creates a new master key and encrypts every stored secret with it.',
  ownSignals: true,
  arguments: {},
  options: { data: dataOptions.data },
  examples: [{ line: 'svc3 server rotate-master-key --data .svc3', does: 'Rotate the key of the local server' }],
  async run({ host }, { options }) {
    const dataDir = dataDirOf(host, options.data)
    becomeOwner(dataDir)
    const file = await requireKeyFile(dataDir)
    const { keyId, resealed, refused } = await explaining('The current keys are still valid; try again', () =>
      withLockFile(`${file}.lock`, () => rotate(dataDir, file), busy),
    )
    host.stdout.write(`Master key rotated: ${resealed} records are now encrypted with key ${keyId}.\n`)
    for (const { problem } of refused) host.stderr.write(`svc3: ${problem}\n`)
    if (refused.length === 0) return 0
    throw new Failure(
      `${refused.length} records cannot be decrypted and were not changed; the old key is kept for them`,
      'Delete those records and create them again',
    )
  },
})

/** Returns the file of the master key. Throws unless this machine has the only copy. */
async function requireKeyFile(dataDir: string): Promise<string> {
  const { source } = takeKeySource(dataDir, { ...process.env })
  if (source.kind !== 'file') throw new Failure(notOurs(source.name), 'Follow docs/operate/keys-and-certificates.md')
  if ((await readFileIfPresent(source.file)) === undefined)
    throw new Failure(`No master key in ${dataDir}`, 'Specify the data folder of a server with --data DIR')
  if (!fs.existsSync(databaseIn(dataDir)))
    throw new Failure(
      `The records of ${dataDir} are in a store that several servers share`,
      'Rotate the key by hand: this command cannot give it to the other servers',
    )
  return source.file
}

const busy = (pid: number): Failure =>
  new Failure(`Another rotation is in progress (process ${pid})`, 'Wait until it finishes')

const rotate = (dataDir: string, file: string): Promise<Rotation> =>
  withRecords(
    { dataDir, storeAddress: `sqlite:${dataDir}` },
    async (store) => {
      const secrets = await openSecrets(dataDir)
      await using collections = await openCollections(store)
      return await rotateKeyFile(collections, secrets, file)
    },
    () => askServer(dataDir, { name: 'master-key' }, timeoutMs),
  )
