// svc3 agent install
import { command as agent } from '../agent.ts'
import { installCommand } from './service.ts'

export const command = installCommand({
  kind: 'agent',
  command: agent,
  without: ['data', 'join', 'join-token-file', 'join-token-stdin', 'remove-unknown'],
  description:
    'Makes the agent a service of this host, by systemd or launchd: started with it, and again when it fails. Its VMs run\non when it stops. The join token goes into a file of its user alone, and is removed when the node has joined.',
  examples: [
    {
      line: 'svc3 agent install --api-url https://svc3.example.com --join-token-stdin < token.txt',
      does: 'This host becomes a node',
    },
    { line: 'svc3 agent install --api-url https://svc3.example.com --dry-run', does: 'What would be done' },
  ],
})
