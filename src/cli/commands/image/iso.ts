// svc3 iso
import { defineCommand, namespaced, printed } from '../../command.ts'
import { listCommand, showCommand } from '../../record-commands.ts'
import { downloadFile } from './download-file.ts'
import { columns, copyCommand, deleteImages, describeCommand, fields, isoKind } from './kind.ts'
import { described, named, saved } from './options.ts'
import { uploadFile } from './upload-file.ts'

const upload = defineCommand({
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

const download = defineCommand({
  description: 'If interrupted, run the same command to resume.',
  arguments: { name: { value: 'NAME', description: 'ISO to download', names: 'isos', required: true } },
  options: { ...saved, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 iso download ventura.iso', does: 'Save to the current folder' },
    { line: 'svc3 iso download ventura.iso -f /tmp/disc.iso', does: 'Save to another path' },
  ],
  run: (context, { args: { name }, options: { file, force } }) => downloadFile(context, isoKind, { name, file, force }),
})

export const commands = {
  list: listCommand({
    description: 'ISOs belong to the cluster and are the same in every namespace.',
    examples: [
      { line: 'svc3 iso list', does: 'List all ISOs' },
      { line: 'svc3 iso list ventura.iso -o wide', does: 'Show one ISO with its source' },
    ],
    list: isoKind.list,
    columns,
    scope: 'cluster',
  }),
  show: showCommand({
    argument: { value: 'ISO', description: 'name of the ISO' },
    examples: [{ line: 'svc3 iso show ventura.iso', does: 'Show everything about an ISO' }],
    get: isoKind.get,
    fields,
  }),
  copy: copyCommand(isoKind),
  upload,
  download,
  'set-description': describeCommand(isoKind),
  delete: deleteImages(isoKind),
}
