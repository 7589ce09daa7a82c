// svc3 image upload
import { defineCommand, namespaced, printed } from '../../command.ts'
import { imageKind } from './kind.ts'
import { bootedBy, described, named } from './options.ts'
import { uploadFile } from './upload-file.ts'

export const command = defineCommand({
  description:
    'Uploads a raw or qcow2 disk, also compressed with gzip, zstd or xz. If interrupted, run the same command to resume.',
  arguments: { file: { value: 'FILE', description: 'file to upload', required: true } },
  options: { ...named, ...bootedBy, ...described, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 image upload disk.qcow2', does: 'Use the name of the file' },
    { line: 'svc3 image upload disk.qcow2 --name sonoma --type arm64', does: 'Choose another name' },
  ],
  run: (context, { args: { file }, options: { name, description, type, firmware, os } }) =>
    uploadFile(context, imageKind, { file, name, description, type, firmware, os }),
})
