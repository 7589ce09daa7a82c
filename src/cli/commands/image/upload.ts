// svc3 image upload
import { defineCommand, namespaced, printed } from '../../command.ts'
import { imageKind } from './kind.ts'
import { bootedBy, described, named } from './options.ts'
import { uploadFile } from './upload-file.ts'

export const command = defineCommand({
  description: 'Raw and qcow2 disks, also in gzip, zstd or xz. Cut off, the same command goes on where it was.',
  arguments: { file: { value: 'FILE', description: 'file to upload', required: true } },
  options: { ...named, ...bootedBy, ...described, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 image upload disk.qcow2', does: 'Under the name of the file' },
    { line: 'svc3 image upload disk.qcow2 --name sonoma --type arm64', does: 'Under another name' },
  ],
  run: (context, { args: { file }, options: { name, description, type, firmware, os } }) =>
    uploadFile(context, imageKind, { file, name, description, type, firmware, os }),
})
