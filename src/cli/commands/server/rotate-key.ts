// svc3 server rotate-key
import { defineCommand } from '../../command.ts'
import { dataDir } from '../../connect/connection.ts'

export const command = defineCommand({
  description: 'Makes a new key the current one and seals every stored secret with it again.',
  ownSignals: true,
  arguments: {},
  options: {
    data: {
      type: 'string',
      value: 'DIR',
      defaultText: '$SVC3_DATA, or .svc3 in the checkout or your home',
      description: 'Folder of all state',
    },
  },
  examples: [{ line: 'svc3 server rotate-key --data .svc3', does: 'A new key for the local server' }],
  run: ({ host }, { options }) => host.programs.rotateKey({ dataDir: dataDir(host, options.data) }),
})
