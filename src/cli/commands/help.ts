// svc3 help
import { defineCommand } from '../command.ts'
import { showHelpFor } from '../line/show-help.ts'

export const command = defineCommand({
  arguments: {
    words: { value: 'COMMAND', description: 'command to explain', repeatable: true, names: 'commands' },
  },
  options: {},
  examples: [{ line: 'svc3 help regcred add', does: 'Same as svc3 regcred add --help' }],
  async run({ host, commands }, { args }) {
    await showHelpFor(host, commands, args.words)
  },
})
