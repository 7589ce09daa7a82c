// svc3 server install
import { installCommand } from '../agent/service.ts'
import { command as server } from './run.ts'

export const command = installCommand({
  kind: 'server',
  command: server,
  without: ['data'],
  description:
    'Makes the control plane a service of this host, by systemd or launchd: started with it, and again when it fails.',
  examples: [
    { line: 'svc3 server install --url https://svc3.example.com:8443', does: 'HTTPS on port 8443, from now on' },
    { line: 'svc3 server install --dry-run', does: 'What would be done' },
  ],
})
