// svc3 image download
import { defineCommand, namespaced } from '../../command.ts'
import { downloadFile } from './download-file.ts'
import { imageKind } from './kind.ts'
import { saved } from './options.ts'

export const command = defineCommand({
  description: 'Its disk, raw. Cut off, the same command goes on where it was.',
  arguments: { name: { value: 'NAME', description: 'image to download', required: true } },
  options: { ...saved, ...namespaced },
  examples: [
    { line: 'svc3 image download sonoma', does: 'Into this folder' },
    { line: 'svc3 image download sonoma -o /tmp/disk.raw', does: 'Somewhere else' },
  ],
  run: (context, { args: { name }, options: { file, force } }) =>
    downloadFile(context, imageKind, { name, file, force }),
})
