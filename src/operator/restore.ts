// svc3 server restore: restores a backup into an empty store, content first, then records. After an interruption no
// server starts on the partial data, and the same command resumes.
import { randomUUID } from 'node:crypto'
import fs, { type FileHandle } from 'node:fs/promises'
import path from 'node:path'
import { loadKeyring, takeKeySource } from '../auth/keyring.ts'
import { defineCommand } from '../cli/command.ts'
import {
  type BackupRecord,
  type Checked,
  checkBackup,
  clusterKey,
  entriesOf,
  entryText,
  folderFiles,
  manifestsKeptBy,
  manifestsNamedBy,
  names,
  recordsOf,
} from '../control-plane/backup-file.ts'
import { OperatorError } from '../control-plane/data-folder.ts'
import { contentFolder, inFolder, openKnownPlace } from '../control-plane/image-place.ts'
import { checkPlace, isShared, writePlace } from '../control-plane/store-place.ts'
import { readManifest } from '../images/pack/stored-manifests.ts'
import { timestamp } from '../platform/clock.ts'
import { writeFileAtomically } from '../platform/files.ts'
import { counted } from '../rules/sizes.ts'
import { beginFilling, fillStore, finishFilling, startRevOf } from '../store/fill.ts'
import { openStore } from '../store/open.ts'
import type { ClusterRecord } from '../store/records/collections.ts'
import type { Json, Rev } from '../store/store.ts'
import { type ImagePlaceRecord, imagesKey } from '../store/store-state.ts'
import { explaining, masterKeyLocation } from './data.ts'
import { dataLocationOf, dataOptions, fileOf, imagesAddressOf, imagesOption } from './options.ts'

export const command = defineCommand({
  description:
    'Restores a backup into an empty data folder or an empty prefix of etcd. Checks the whole file first. If interrupted, run\nthe same command to resume; until it finishes, no server starts there.',
  ownSignals: true,
  arguments: { file: { value: 'FILE', description: 'backup to restore', required: true } },
  options: {
    ...dataOptions,
    images: {
      ...imagesOption,
      defaultText: '$SVC3_IMAGES, or the original place',
      description: 'Target for images: oci://HOST/PREFIX, or folder',
    },
  },
  examples: [
    { line: 'svc3 server restore svc3.tar --data /var/lib/svc3-new', does: 'Restore into a new folder' },
    {
      line: 'svc3 server restore svc3.tar --data /var/lib/svc3-new --store etcd://127.0.0.1:2379/svc3-new',
      does: 'Restore into etcd, also from a backup of SQLite',
    },
    {
      line: 'svc3 server restore svc3.tar --data /var/lib/svc3-new --images oci://registry.example.com/svc3/images',
      does: 'Restore the images into a registry',
    },
  ],
  run: ({ host }, { args, options }) =>
    explaining('Nothing was restored', async () => {
      const { dataDir, storeAddress = `sqlite:${dataDir}` } = dataLocationOf(host, options)
      const { head, contents, kept, missingKeys, imagePlace } = await restoreBackup({
        file: fileOf(host, args.file),
        dataDir,
        storeAddress,
        images: options.images === inFolder ? inFolder : imagesAddressOf(host, options.images),
        environment: { ...process.env },
      })
      const say = (line: string): void => host.stdout.write(`${line}\n`)
      const images = head.hasImages ? ` and ${counted(contents, 'file')} of images and ISOs` : ''
      say(`Restored ${counted(head.records, 'record')}${images} as of revision ${head.revision}, ${head.createdAt}.`)
      if (!head.hasImages)
        say(
          imagePlace === inFolder
            ? `The backup does not include the content of images. Copy it to ${contentFolder(dataDir)}.`
            : `The backup does not include the content of images. It must be in ${imagePlace}.`,
        )
      for (const name of kept) say(`${name} in ${dataDir} already existed and was not changed.`)
      if (missingKeys.length > 0)
        say(
          `Before you start a server, put the master key ${missingKeys.join(', ')} in ${masterKeyLocation(dataDir)}, mode 0600.`,
        )
      const store = isShared(storeAddress) ? ` --store '${storeAddress}'` : ''
      const from = imagePlace === inFolder ? '' : ` --images ${imagePlace}`
      say(`Start it with: ${host.typedAs} server --data ${dataDir}${store}${from}`)
      return 0
    }),
})

interface RestoreOptions {
  readonly file: string
  readonly dataDir: string
  readonly storeAddress: string
  /** The target of images: `oci://…` or `folder`. Default: their original location. */
  readonly images?: string | undefined
  readonly environment: NodeJS.ProcessEnv
}

interface RestoreReport {
  readonly head: Checked['head']
  readonly contents: number
  /** Files of the data folder that existed and were not overwritten. */
  readonly kept: readonly string[]
  /** Ids of master keys that are needed and missing. */
  readonly missingKeys: readonly string[]
  readonly imagePlace: string
}

const unfinished = 'The restore did not finish. Correct the problem, then run the same command again'

export async function restoreBackup(options: RestoreOptions): Promise<RestoreReport> {
  const { file, dataDir, storeAddress, environment } = options
  const handle = await fs.open(file, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') throw new OperatorError(`File ${file} not found`)
    throw error
  })
  try {
    const { head, sha256, contents } = await checkBackup(handle, file)
    await fs.mkdir(dataDir, { recursive: true, mode: 0o700 })
    await checkPlace(dataDir, storeAddress)
    const store = await openStore(storeAddress, undefined, { startRev: startRevOf(head.revision) })
    try {
      const source = `the backup of ${head.createdAt} (${sha256.slice(0, 12)})`
      const { place, ...images } = await imagesIn(handle)
      const imagePlace = options.images ?? place
      const records = { source, rev: head.revision, entries: () => restored(handle, head.revision, imagePlace) }
      const since = timestamp(new Date())
      // Refuses a store with records before anything is written.
      await beginFilling(store, records, since)
      return await explaining(unfinished, async () => {
        if (head.hasImages) await putContents(handle, { ...images, imagePlace, dataDir, environment })
        await fillStore(store, records, since)
        const kept = await putFiles(handle, dataDir)
        if (isShared(storeAddress)) await writePlace(dataDir, storeAddress)
        await finishFilling(store)
        return { head, contents, kept, imagePlace, missingKeys: await missingKeys(dataDir, environment, head.keyIds) }
      })
    } finally {
      await store.close()
    }
  } finally {
    await handle.close()
  }
}

async function* restored(handle: FileHandle, revision: Rev, imagePlace: string): AsyncGenerator<BackupRecord> {
  for await (const record of allRecords(handle))
    if (record.key !== imagesKey) yield record.key === clusterKey ? withEra(record, revision) : record
  yield { key: imagesKey, value: { address: imagePlace } }
}

async function* allRecords(handle: FileHandle): AsyncGenerator<BackupRecord> {
  for await (const entry of entriesOf(handle))
    if (entry.name.startsWith('records/')) yield* recordsOf(await entryText(entry))
}

async function imagesIn(handle: FileHandle): Promise<Images> {
  const manifests = new Set<string>()
  const kept = new Set<string>()
  let place: string = inFolder
  let cluster = ''
  for await (const record of allRecords(handle)) {
    for (const digest of manifestsNamedBy(record)) manifests.add(digest)
    for (const digest of manifestsKeptBy(record)) kept.add(digest)
    if (record.key === imagesKey) place = (record.value as unknown as ImagePlaceRecord).address
    if (record.key === clusterKey) cluster = (record.value as unknown as ClusterRecord).uid
  }
  return { place, manifests, kept, cluster }
}

interface Images {
  readonly place: string
  readonly manifests: ReadonlySet<string>
  /** The manifests of earlier versions. The backup lacks those whose content was lost. */
  readonly kept: ReadonlySet<string>
  readonly cluster: string
}

/** Adds an era, by which nodes notice that the data are older than before. They keep VMs that are not in these data. */
function withEra({ key, value }: BackupRecord, since: Rev): BackupRecord {
  const cluster = value as unknown as ClusterRecord
  const eras = [...(cluster.eras ?? []), { uid: randomUUID(), since }].slice(-100)
  return { key, value: { ...cluster, eras } as unknown as Json }
}

interface Target extends Omit<Images, 'place'> {
  readonly imagePlace: string
  readonly dataDir: string
  readonly environment: NodeJS.ProcessEnv
}

async function putContents(handle: FileHandle, target: Target): Promise<void> {
  const { imagePlace, manifests, kept, cluster, dataDir, environment } = target
  const { content, registry, close } = await openKnownPlace(imagePlace, dataDir, { ...environment })
  try {
    await registry?.claim(cluster)
    for await (const entry of entriesOf(handle)) {
      if (!entry.name.startsWith('content/')) continue
      const digest = entry.name.slice('content/'.length).replace('/', ':')
      await content.putExpected({ digest, bytes: entry.bytes }, entry.content())
    }
    for (const digest of manifests) await content.hold(digest, await readManifest(content, digest))
    for (const digest of kept)
      if ((await content.size(digest)) !== undefined) await content.hold(digest, await readManifest(content, digest))
  } finally {
    close()
  }
}

async function putFiles(handle: FileHandle, dataDir: string): Promise<readonly string[]> {
  const kept: string[] = []
  for await (const entry of entriesOf(handle)) {
    const name = folderFiles.find((each) => names.folder(each) === entry.name)
    if (!name) continue
    const text = await entryText(entry)
    const before = await fs.readFile(path.join(dataDir, name), 'utf8').catch(() => undefined)
    if (before === undefined) await writeFileAtomically(path.join(dataDir, name), text, { mode: 0o600 })
    else if (before !== text) kept.push(name)
  }
  return kept
}

async function missingKeys(
  dataDir: string,
  environment: NodeJS.ProcessEnv,
  needed: readonly string[],
): Promise<readonly string[]> {
  const ring = await loadKeyring(takeKeySource(dataDir, { ...environment }), false).catch(() => undefined)
  return needed.filter((id) => !ring?.keys.has(id))
}
