// svc3 image download
import { defineCommand, namespaced, printed } from '../../command.ts'
import { downloadFile } from './download-file.ts'
import { imageKind } from './kind.ts'
import { saved } from './options.ts'

export const command = defineCommand({
  description: 'Its disk, raw or as qcow2. Cut off, the same command goes on where it was.',
  arguments: { name: { value: 'NAME', description: 'image to download', names: 'images', required: true } },
  options: {
    ...saved,
    format: { type: 'choice', choices: ['raw', 'qcow2'], default: 'raw', description: 'What the file is to be' },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 image download sonoma', does: 'Into this folder' },
    { line: 'svc3 image download sonoma -f /tmp/disk.raw', does: 'Somewhere else' },
    { line: 'svc3 image download sonoma --format qcow2', does: 'As sonoma.qcow2, without the empty parts' },
  ],
  run: (context, { args: { name }, options: { file, force, format } }) =>
    downloadFile(context, imageKind, { name, file, force, format }),
})
