// svc3 completion
import { defineCommand } from '../command.ts'
import { completionScript, shells } from '../line/completion-scripts.ts'

export const command = defineCommand({
  description:
    'Prints a script that completes commands, options, and the names of VMs, images, nodes and namespaces from the\n' +
    'server. Put the line for your shell into its start-up file: ~/.bashrc, ~/.zshrc (after compinit),\n' +
    '~/.config/fish/config.fish, $PROFILE.',
  arguments: {
    shell: { value: 'SHELL', description: shells.join(', '), required: true, choices: shells },
  },
  options: { 'no-descriptions': { type: 'boolean', description: 'Complete words without their descriptions' } },
  examples: [
    { line: 'eval "$(svc3 completion bash)"', does: 'bash' },
    { line: 'eval "$(svc3 completion zsh)"', does: 'zsh' },
    { line: 'svc3 completion fish | source', does: 'fish' },
    { line: 'svc3 completion powershell | Out-String | Invoke-Expression', does: 'PowerShell' },
  ],
  async run({ host }, { args: { shell }, options }) {
    host.stdout.write(completionScript(shell, { isBare: options['no-descriptions'] }))
  },
})
