// svc3 iso download
import { defineCommand, namespaced, printed } from '../../command.ts'
import { downloadFile } from '../image/download-file.ts'
import { saved } from '../image/options.ts'
import { isoKind } from './kind.ts'

export const command = defineCommand({
  description: 'If interrupted, run the same command to resume.',
  arguments: { name: { value: 'NAME', description: 'ISO to download', names: 'isos', required: true } },
  options: { ...saved, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 iso download ventura.iso', does: 'Save to the current folder' },
    { line: 'svc3 iso download ventura.iso -f /tmp/disc.iso', does: 'Save to another path' },
  ],
  run: (context, { args: { name }, options: { file, force } }) => downloadFile(context, isoKind, { name, file, force }),
})
