// svc3 server restore
import { defineCommand } from '../../command.ts'
import { fileOf, imagesTarget, imagesTargetOf, placeOf, placeOptions } from './options.ts'

export const command = defineCommand({
  description:
    'Restores a backup into an empty data folder, or an empty prefix of etcd. The whole file is checked before anything is\nwritten. Cut off, the same command goes on; until it has ended, no server starts there.',
  ownSignals: true,
  arguments: { file: { value: 'FILE', description: 'backup to restore', required: true } },
  options: { ...placeOptions, images: imagesTarget },
  examples: [
    { line: 'svc3 server restore svc3.tar --data /var/lib/svc3-new', does: 'Into a new folder' },
    {
      line: 'svc3 server restore svc3.tar --data /var/lib/svc3-new --store etcd://127.0.0.1:2379/svc3-new',
      does: 'Into etcd, also from a backup of SQLite',
    },
    {
      line: 'svc3 server restore svc3.tar --data /var/lib/svc3-new --images oci://registry.example.com/svc3/images',
      does: 'With the images into a registry, wherever they were',
    },
  ],
  run: ({ host }, { args, options }) =>
    host.programs.restore({
      ...placeOf(host, options),
      file: fileOf(host, args.file),
      images: imagesTargetOf(host, options.images),
    }),
})
