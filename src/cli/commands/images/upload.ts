// svc3 image upload
import { defineCommand, namespaced, printed } from '../../command.ts'
import { imageKind } from './kind.ts'
import { described, named } from './options.ts'
import { uploadFile } from './upload-file.ts'

export const command = defineCommand({
  description: 'Raw and qcow2 disks, also compressed ones: what a file is, is seen in its content.',
  arguments: { file: { value: 'FILE', description: 'file to upload', required: true } },
  options: { ...named, ...described, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 image upload disk.qcow2', does: 'Under the name of the file' },
    { line: 'svc3 image upload disk.qcow2 --name sonoma --type arm64', does: 'Under another name' },
  ],
  run: (context, { args: { file }, options: { name, description, type } }) =>
    uploadFile(context, imageKind, { file, name, description, type }),
})
