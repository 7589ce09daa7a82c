// svc3 server backup: everything that a service knows, in one file. A running server writes it itself.
import { defineCommand } from '../cli/command.ts'
import { type BackupReport, writeBackup } from '../control-plane/backup-file.ts'
import { imagePlaceOf, inFolder, openKnownPlace } from '../control-plane/image-place.ts'
import { askServer } from '../control-plane/operator-request.ts'
import { addressOf, assertThere } from '../control-plane/store-place.ts'
import { explaining, keyPlace, withStore } from './data.ts'
import { type DataPlace, fileOf, placeOf, placeOptions } from './options.ts'

/** A server copies many images in this time. */
const timeoutMs = 12 * 3_600_000

export const command = defineCommand({
  description:
    'Writes everything that a service knows into one file, as of one moment, also while it runs: all records, users,\nconfig.json, and the content of images and ISOs. The master key is not in it: keep that beside it, elsewhere.',
  ownSignals: true,
  arguments: { file: { value: 'FILE', description: 'file to write; it must not be there yet', required: true } },
  options: {
    'without-images': { type: 'boolean', description: 'Leave the content of images and ISOs out' },
    ...placeOptions,
  },
  examples: [
    { line: 'svc3 server backup svc3.tar', does: 'Everything' },
    {
      line: 'svc3 server backup records.tar --without-images',
      does: 'The records; the folder "content" is kept otherwise',
    },
  ],
  run: ({ host }, { args, options }) =>
    explaining('no backup was made', async () => {
      const place = placeOf(host, options)
      const file = fileOf(host, args.file)
      const withImages = !options['without-images']
      const { contents, records, revision, bytes, keyIds, imagePlace } = await backUp(place, file, withImages)
      const images = contents === undefined ? '' : `, ${contents} pieces of images and ISOs`
      host.stdout.write(`${file}: ${records} records as of revision ${revision}${images}, ${bytes} bytes.\n`)
      if (!withImages) host.stdout.write(`The content of images and ISOs is not in it: keep ${imagePlace} as well.\n`)
      if (keyIds.length > 0)
        host.stdout.write(
          `Needed besides: the master key ${keyIds.join(', ')} (${keyPlace(place.dataDir)}), without which its secrets do not open.\n`,
        )
      return 0
    }),
})

async function backUp({ dataDir, storeAddress }: DataPlace, file: string, withImages: boolean): Promise<BackupReport> {
  const address = await addressOf(dataDir, storeAddress)
  assertThere(dataDir, address)
  return withStore(
    address,
    async (store) => {
      const known = (await imagePlaceOf(store))?.value.address ?? inFolder
      const { content, close } = await openKnownPlace(known, dataDir, process.env)
      return writeBackup({ store, dataDir, file, withImages, content }).finally(close)
    },
    () => askServer(dataDir, { name: 'backup', file, withImages }, timeoutMs),
  )
}
