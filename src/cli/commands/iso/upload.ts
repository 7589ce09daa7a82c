// svc3 iso upload
import { defineCommand, namespaced, printed } from '../../command.ts'
import { described, named } from '../image/options.ts'
import { uploadFile } from '../image/upload-file.ts'
import { isoKind } from './kind.ts'

export const command = defineCommand({
  description: 'Any file that VMs should see as a disc. Cut off, the same command goes on where it was.',
  arguments: { file: { value: 'FILE', description: 'file to upload', required: true } },
  options: { ...named, ...described, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 iso upload ventura.iso', does: 'Under the name of the file' },
    { line: 'svc3 iso upload ventura.iso --name installer.iso', does: 'Under another name' },
  ],
  run: (context, { args: { file }, options: { name, description, type } }) =>
    uploadFile(context, isoKind, { file, name, description, type }),
})
