// svc3 iso download
import { defineCommand, namespaced, printed } from '../../command.ts'
import { downloadFile } from '../image/download-file.ts'
import { saved } from '../image/options.ts'
import { isoKind } from './kind.ts'

export const command = defineCommand({
  description: 'Cut off, the same command goes on where it was.',
  arguments: { name: { value: 'NAME', description: 'ISO to download', names: 'isos', required: true } },
  options: { ...saved, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 iso download ventura.iso', does: 'Into this folder' },
    { line: 'svc3 iso download ventura.iso -f /tmp/disc.iso', does: 'Somewhere else' },
  ],
  run: (context, { args: { name }, options: { file, force } }) => downloadFile(context, isoKind, { name, file, force }),
})
