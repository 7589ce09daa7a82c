// Tells systemd how a service stands (Type=notify). Node has no datagram sockets of the Unix kind: systemd's own small
// program sends the word. Elsewhere, and where nobody asked for it, nothing happens.
import { childEnvironment, exec } from './exec.ts'

const timeoutMs = 10_000

export async function notifySupervisor(state: 'ready' | 'stopping', status: string): Promise<void> {
  const { NOTIFY_SOCKET } = process.env
  if (!NOTIFY_SOCKET) return
  const word = state === 'ready' ? '--ready' : 'STOPPING=1'
  // One line: what follows a line break would be another variable.
  const line = status.replaceAll(/\s+/g, ' ').slice(0, 200)
  await exec('systemd-notify', [word, `--status=${line}`], {
    timeoutMs: timeoutMs,
    env: { ...childEnvironment, NOTIFY_SOCKET },
    // That nobody hears it is no reason to end.
  }).catch((error: Error) => void process.stderr.write(`svc3: cannot notify systemd: ${error.message}\n`))
}
