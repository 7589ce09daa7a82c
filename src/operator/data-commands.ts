// `svc3 server backup`, `restore`, `migrate-store` and `forget`: finds the data, has it done, and says what is needed besides.
import { takeKeySource } from '../auth/keyring.ts'
import type {
  BackupCommandOptions,
  ForgetServerOptions,
  MigrateStoreOptions,
  RestoreCommandOptions,
} from '../cli/programs.ts'
import { contentFolder, imagePlaceOf, inFolder, openKnownPlace } from '../control-plane/image-place.ts'
import { addressOf, assertThere, isShared } from '../control-plane/store-place.ts'
import { ContentTooLargeError, ContentUnavailableError } from '../images/content.ts'
import { ForeignImagesError } from '../oci/content/owner.ts'
import { RegistryError } from '../oci/errors.ts'
import { SettingsError } from '../server/settings.ts'
import { openStore } from '../store/open.ts'
import { isFault, StoreError } from '../store/store.ts'
import { assertUsable } from '../store/store-state.ts'
import { type BackupReport, writeBackup } from './backup.ts'
import { BackupError } from './backup-format.ts'
import { becomeOwner } from './become-owner.ts'
import { forgetServer, NotForgottenError } from './forget-server.ts'
import { migrateStore, movedIn } from './migrate-store.ts'
import { askServer, NotDoneError } from './operator-request.ts'
import { restoreBackup } from './restore.ts'

/** A server copies many images in this time. */
const backupPatienceMs = 12 * 3_600_000

export const runBackup = (options: BackupCommandOptions): Promise<number> =>
  told('no backup was made', async () => {
    const { dataDir, storeAddress, file, withImages } = options
    const address = await addressOf(dataDir, storeAddress)
    assertThere(dataDir, address)
    const { contents, records, revision, bytes, keyIds, imagePlace } = await backUp(options, address)
    const images = contents === undefined ? '' : `, ${contents} pieces of images and ISOs`
    say(`${file}: ${records} records as of revision ${revision}${images}, ${bytes} bytes.`)
    if (!withImages) say(`The content of images and ISOs is not in it: keep ${imagePlace} as well.`)
    if (keyIds.length > 0)
      say(
        `Needed besides: the master key ${keyIds.join(', ')} (${keyPlace(dataDir)}), without which its secrets do not open.`,
      )
  })

async function backUp(options: BackupCommandOptions, address: string): Promise<BackupReport> {
  const { dataDir, file, withImages } = options
  const store = await openStore(address).catch((error: unknown) => {
    if (isFault(error, 'Locked')) return undefined
    throw error
  })
  if (!store) return askServer(dataDir, { name: 'backup', file, withImages }, backupPatienceMs)
  try {
    await assertUsable(store)
    const known = (await imagePlaceOf(store))?.value.address ?? inFolder
    const { content, close } = await openKnownPlace(known, dataDir, process.env)
    return await writeBackup({ store, dataDir, file, withImages, content }).finally(close)
  } finally {
    await store.close()
  }
}

export const runRestore = ({ dataDir, storeAddress = `sqlite:${dataDir}`, file, images: to }: RestoreCommandOptions) =>
  told('nothing is restored; what was begun, the same command goes on with', async () => {
    const environment = { ...process.env }
    const {
      head,
      contents,
      kept,
      missingKeys,
      keyPlace: place,
      imagePlace,
    } = await restoreBackup({
      file,
      dataDir,
      storeAddress,
      images: to,
      environment,
    })
    const images = head.hasImages ? ` and ${contents} pieces of images and ISOs` : ''
    say(`Restored ${head.records} records${images} as of revision ${head.revision}, ${head.createdAt}.`)
    if (!head.hasImages)
      say(
        imagePlace === inFolder
          ? `The content of images was not in the backup: put it into ${contentFolder(dataDir)} from where you keep it.`
          : `The content of images was not in the backup: it is expected in ${imagePlace}.`,
      )
    for (const name of kept) say(`${name} in ${dataDir} was there already and was left as it is.`)
    if (missingKeys.length > 0)
      say(`Needed before a server can start: the master key ${missingKeys.join(', ')} in ${place}, mode 0600.`)
    const store = isShared(storeAddress) ? ` --store '${storeAddress}'` : ''
    const from = imagePlace === inFolder ? '' : ` --images ${imagePlace}`
    say(`Start it with: svc3 server --data ${dataDir}${store}${from}`)
  })

export const runMigrateStore = ({ dataDir, to }: MigrateStoreOptions): Promise<number> =>
  told('the records in SQLite are as they were', async () => {
    becomeOwner(dataDir)
    const { records, revision } = await migrateStore(dataDir, to)
    say(`Moved ${records} records as of revision ${revision} to ${to}.`)
    say(`No server starts on the old ones any more: ${movedIn(dataDir)}. Remove it when all is well.`)
    say(
      `Start every server with --store '${to}' and the same master key (${keyPlace(dataDir)}); this one with --data ${dataDir}.`,
    )
  })

export const runForgetServer = ({ dataDir, storeAddress, name }: ForgetServerOptions): Promise<number> =>
  told('nothing is changed', async () => {
    const address = await addressOf(dataDir, storeAddress)
    if (!isShared(address))
      throw new NotForgottenError(
        `the records of ${dataDir} are its own, and no other server is known there: name the store with --store ADDRESS`,
      )
    const store = await openStore(address)
    try {
      await assertUsable(store)
      await forgetServer(store, name)
    } finally {
      await store.close()
    }
    say(
      `The server ${name} is forgotten. What only it had of images counts as lost: delete those images and upload them again.`,
    )
  })

function keyPlace(dataDir: string): string {
  const { source } = takeKeySource(dataDir, { ...process.env })
  return source.kind === 'file' ? source.file : source.name
}

const say = (text: string): void => void process.stdout.write(`${text}\n`)

const content = [ContentUnavailableError, ContentTooLargeError]

/** Failures that are meant for people, and what they leave behind. */
async function told(left: string, work: () => Promise<void>): Promise<number> {
  try {
    await work()
    return 0
  } catch (error) {
    const isKnown = [
      BackupError,
      StoreError,
      NotDoneError,
      NotForgottenError,
      SettingsError,
      ForeignImagesError,
      RegistryError,
      ...content,
    ].some((kind) => error instanceof kind)
    const { code, message } = error as NodeJS.ErrnoException
    if (!isKnown && code === undefined) throw error
    const locked = isFault(error, 'Locked') ? ' (stop the server first)' : ''
    process.stderr.write(`svc3: ${message}${locked}\nsvc3: ${left}\n`)
    return 1
  }
}
