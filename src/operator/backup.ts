// svc3 server backup: everything that a service knows, in one file. A running server writes it itself.
import { defineCommand } from '../cli/command.ts'
import { type BackupReport, writeBackup } from '../control-plane/backup-file.ts'
import { imagePlaceOf, inFolder, openKnownPlace } from '../control-plane/image-place.ts'
import { askServer } from '../control-plane/operator-request.ts'
import { assertThere, storeAddressFor } from '../control-plane/store-place.ts'
import { counted } from '../rules/sizes.ts'
import { explaining, keyPlace, withStore } from './data.ts'
import { type DataPlace, dataPlaceOf, fileOf, placeOptions } from './options.ts'

/** A server copies many images in this time. */
const timeoutMs = 12 * 3_600_000

export const command = defineCommand({
  description:
    'Writes all records, users, config.json, and the content of images and ISOs to one file, as of one moment, also while\nthe server runs. The master key is not included: keep a copy of it elsewhere.',
  ownSignals: true,
  arguments: { file: { value: 'FILE', description: 'file to create', required: true } },
  options: {
    'without-images': { type: 'boolean', description: 'Skip the content of images and ISOs' },
    ...placeOptions,
  },
  examples: [
    { line: 'svc3 server backup svc3.tar', does: 'Everything' },
    {
      line: 'svc3 server backup records.tar --without-images',
      does: 'Back up the records only',
    },
  ],
  run: ({ host }, { args, options }) =>
    explaining('No backup was made', async () => {
      const place = dataPlaceOf(host, options)
      const file = fileOf(host, args.file)
      const withImages = !options['without-images']
      const { contents, records, revision, bytes, keyIds, imagePlace } = await backUp(place, file, withImages)
      const images = contents === undefined ? '' : `, ${counted(contents, 'file')} of images and ISOs`
      host.stdout.write(`${file}: ${counted(records, 'record')} as of revision ${revision}${images}, ${bytes} bytes.\n`)
      if (!withImages) host.stdout.write(`The content of images and ISOs is not included: back up ${imagePlace} too.\n`)
      if (keyIds.length > 0)
        host.stdout.write(
          `Also keep the master key ${keyIds.join(', ')} (${keyPlace(place.dataDir)}): without it, secrets cannot be restored.\n`,
        )
      return 0
    }),
})

async function backUp({ dataDir, storeAddress }: DataPlace, file: string, withImages: boolean): Promise<BackupReport> {
  const address = await storeAddressFor(dataDir, storeAddress)
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
