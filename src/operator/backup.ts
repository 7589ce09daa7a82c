// svc3 server backup: everything that a service knows, in one file. A running server writes it itself.
import { defineCommand } from '../cli/command.ts'
import { type BackupReport, writeBackup } from '../control-plane/backup-file.ts'
import { imagePlaceOf, inFolder, openKnownPlace } from '../control-plane/image-place.ts'
import { askServer } from '../control-plane/operator-request.ts'
import { counted } from '../rules/sizes.ts'
import { explaining, masterKeyLocation, withRecords } from './data.ts'
import { type DataLocation, dataLocationOf, dataOptions, fileOf } from './options.ts'

/** Copying many images takes hours. */
const serverTimeoutMs = 12 * 3_600_000

export const command = defineCommand({
  description:
    'Writes all records, users, config.json, and the content of images and ISOs to one file, as of one moment, also while\nthe server runs. The master key is not included: keep a copy of it elsewhere.',
  ownSignals: true,
  arguments: { file: { value: 'FILE', description: 'file to create', required: true } },
  options: {
    'without-images': { type: 'boolean', description: 'Skip the content of images and ISOs' },
    ...dataOptions,
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
      const data = dataLocationOf(host, options)
      const file = fileOf(host, args.file)
      const withImages = !options['without-images']
      const { contents, records, revision, bytes, keyIds, imagePlace } = await backUp(data, file, withImages)
      const images = contents === undefined ? '' : `, ${counted(contents, 'file')} of images and ISOs`
      host.stdout.write(`${file}: ${counted(records, 'record')} as of revision ${revision}${images}, ${bytes} bytes.\n`)
      if (!withImages) host.stdout.write(`The content of images and ISOs is not included: back up ${imagePlace} too.\n`)
      if (keyIds.length > 0)
        host.stdout.write(
          `Also keep the master key ${keyIds.join(', ')} (${masterKeyLocation(data.dataDir)}): without it, secrets cannot be restored.\n`,
        )
      return 0
    }),
})

const backUp = (data: DataLocation, file: string, withImages: boolean): Promise<BackupReport> =>
  withRecords(
    data,
    async (store) => {
      const { dataDir } = data
      const address = (await imagePlaceOf(store))?.value.address ?? inFolder
      const { content, close } = await openKnownPlace(address, dataDir, process.env)
      return writeBackup({ store, dataDir, file, withImages, content }).finally(close)
    },
    () => askServer(data.dataDir, { name: 'backup', file, withImages }, serverTimeoutMs),
  )
