// svc3 server rotate-master-key: activates a new master key, reseals everything, drops the old one; in the running
// server if there is one. A crash leaves a key ring that opens everything, and the next start finishes.
import fs from 'node:fs'
import path from 'node:path'
import { loadKeyring, takeKeySource } from '../auth/keyring.ts'
import { Secrets } from '../auth/secrets.ts'
import { defineCommand } from '../cli/command.ts'
import { dataDir as dataDirOf } from '../cli/connect/connection.ts'
import { Failure } from '../cli/line/usage.ts'
import { becomeOwner } from '../control-plane/data-folder.ts'
import { askServer } from '../control-plane/operator-request.ts'
import { notOurs, type Rotation, rotateKeyFile } from '../control-plane/reseal.ts'
import { readFileIfPresent } from '../platform/files.ts'
import { LockedError, withLockFile } from '../platform/lock-file.ts'
import { openCollections } from '../store/records/collections.ts'
import { explaining, withStore } from './data.ts'
import { placeOptions } from './options.ts'

const timeoutMs = 60_000

export const command = defineCommand({
  description: 'Makes a new key the current one and seals every stored secret with it again.',
  ownSignals: true,
  arguments: {},
  options: { data: placeOptions.data },
  examples: [{ line: 'svc3 server rotate-master-key --data .svc3', does: 'A new key for the local server' }],
  async run({ host }, { options }) {
    const dataDir = dataDirOf(host, options.data)
    becomeOwner(dataDir)
    const file = await keyFileOf(dataDir)
    const rotated = withLockFile(`${file}.lock`, () => rotate(dataDir, file)).catch((error: unknown) => {
      if (!(error instanceof LockedError)) throw error
      throw new Failure(`another rotation is under way (process ${error.pid})`, 'wait until it is done')
    })
    const { keyId, resealed, refused } = await explaining(
      'the keys in use still open everything; try again',
      () => rotated,
    )
    host.stdout.write(`Master key rotated: ${resealed} sealed records are now under key ${keyId}.\n`)
    for (const { problem } of refused) host.stderr.write(`svc3: ${problem}\n`)
    if (refused.length === 0) return 0
    throw new Failure(
      `${refused.length} sealed records do not open and were left alone; the old key is kept for them`,
      'remove those records and add them again',
    )
  },
})

/** Of a service whose master key only this machine has. */
async function keyFileOf(dataDir: string): Promise<string> {
  const { source } = takeKeySource(dataDir, { ...process.env })
  if (source.kind !== 'file') throw new Failure(notOurs(source.name), 'docs/operating.md has the steps')
  if ((await readFileIfPresent(source.file)) === undefined)
    throw new Failure(
      `there is no master key in ${dataDir}`,
      'is it the data folder of a service? Name it with --data DIR',
    )
  if (!fs.existsSync(path.join(dataDir, 'svc3.db')))
    throw new Failure(
      `the records of the service in ${dataDir} are not there but in a store that servers share`,
      'its master key cannot be rotated by this command: the other servers would not know the new one',
    )
  return source.file
}

const rotate = (dataDir: string, file: string): Promise<Rotation> =>
  withStore(
    `sqlite:${dataDir}`,
    async (store) => {
      const secrets = new Secrets(await loadKeyring({ source: { kind: 'file', file } }, false))
      await using collections = await openCollections(store)
      return await rotateKeyFile(collections, secrets, file)
    },
    () => askServer(dataDir, { name: 'master-key' }, timeoutMs),
  )
