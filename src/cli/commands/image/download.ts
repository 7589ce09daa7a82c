// svc3 image download
import { defineCommand, namespaced, printed } from '../../command.ts'
import { downloadFile } from './download-file.ts'
import { imageKind } from './kind.ts'
import { saved } from './options.ts'

export const command = defineCommand({
  description: 'Downloads the disk, raw or as qcow2. If interrupted, run the same command to resume.',
  arguments: { name: { value: 'NAME', description: 'image to download', names: 'images', required: true } },
  options: {
    ...saved,
    format: { type: 'choice', choices: ['raw', 'qcow2'], default: 'raw', description: 'Format of the file' },
    ...namespaced,
    ...printed,
  },
  examples: [
    { line: 'svc3 image download sonoma', does: 'Save to the current folder' },
    { line: 'svc3 image download sonoma -f /tmp/disk.raw', does: 'Save to another path' },
    { line: 'svc3 image download sonoma --format qcow2', does: 'Save as sonoma.qcow2, without empty blocks' },
  ],
  run: (context, { args: { name }, options: { file, force, format } }) =>
    downloadFile(context, imageKind, { name, file, force, format }),
})
