// svc3 server backup
import { defineCommand } from '../../command.ts'
import { fileOf, placeOf, placeOptions } from './options.ts'

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
    host.programs.backup({
      ...placeOf(host, options),
      file: fileOf(host, args.file),
      withImages: !options['without-images'],
    }),
})
