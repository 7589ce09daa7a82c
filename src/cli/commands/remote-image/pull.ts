// svc3 remote-image pull
import { defineCommand, millisecondsOf, namespaced, printed } from '../../command.ts'
import { described } from '../image/options.ts'
import { remoteImages } from './kind.ts'
import { pullItem, waiting } from './pull-item.ts'

export const command = defineCommand({
  description: 'The server pulls the image in the background and resumes after a restart. Delete the image to cancel.',
  arguments: {
    remote: {
      value: 'REMOTE',
      description: 'name in remote-image list, or an OCI reference: HOST/REPOSITORY/IMAGE[:TAG]',
      required: true,
    },
    name: { value: 'NAME', description: 'name in the cluster (default: the same)' },
  },
  options: { ...waiting, ...described, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 remote-image pull sonoma', does: 'Pull under the same name' },
    { line: 'svc3 remote-image pull ghcr.io/team/sonoma:v1', does: 'From a registry' },
    { line: 'svc3 remote-image pull sonoma mine --wait', does: 'Pull under another name and wait' },
  ],
  run: (context, { args: { remote, name }, options: { description, wait, timeout } }) =>
    pullItem(context, remoteImages, { remote, name, description, wait, timeoutMs: millisecondsOf(timeout) }),
})
