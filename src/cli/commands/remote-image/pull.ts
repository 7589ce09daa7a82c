// svc3 remote-image pull
import { defineCommand, millisecondsOf, namespaced, printed } from '../../command.ts'
import { described } from '../image/options.ts'
import { remoteImages } from './kind.ts'
import { pullItem, waiting } from './pull-item.ts'

export const command = defineCommand({
  description: 'The service fetches it, and goes on by itself when it is restarted. Deleting the image ends it.',
  arguments: {
    remote: {
      value: 'REMOTE',
      description: 'name in "remote-image list", or an OCI reference: HOST/REPOSITORY/IMAGE[:TAG]',
      required: true,
    },
    name: { value: 'NAME', description: 'what to call it; as there when left out' },
  },
  options: { ...waiting, ...described, ...namespaced, ...printed },
  examples: [
    { line: 'svc3 remote-image pull sonoma', does: 'Under the name that it has there' },
    { line: 'svc3 remote-image pull ghcr.io/team/sonoma:v1', does: 'From a registry' },
    { line: 'svc3 remote-image pull sonoma mine --wait', does: 'Under another name, until it is there' },
  ],
  run: (context, { args: { remote, name }, options: { description, wait, timeout } }) =>
    pullItem(context, remoteImages, { remote, name, description, wait, timeoutMs: millisecondsOf(timeout) }),
})
