// svc3 iso upload
import { defineCommand, namespaced, printed } from '../../command.ts'
import { described, named } from '../image/options.ts'
import { uploadFile } from '../image/upload-file.ts'
import { isoKind } from './kind.ts'

export const command = defineCommand({
  description:
    'Uploads a disc for VMs: ISO 9660, UDF, or an installer of Apple. If interrupted, run the same command to resume.',
  arguments: { file: { value: 'FILE', description: 'file to upload', required: true } },
  options: { ...named, ...described, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 iso upload ventura.iso', does: 'Use the name of the file' },
    { line: 'svc3 iso upload ventura.iso --name installer.iso', does: 'Choose another name' },
  ],
  run: (context, { args: { file }, options: { name, description, type } }) =>
    uploadFile(context, isoKind, { file, name, description, type }),
})
