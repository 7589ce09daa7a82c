// Reports the state of the service to systemd (Type=notify). Node lacks Unix datagram sockets, so systemd-notify sends
// the message. Does nothing without NOTIFY_SOCKET.
import { childEnvironment, exec } from './exec.ts'

const timeoutMs = 10_000

export async function notifySupervisor(state: 'ready' | 'stopping', status: string): Promise<void> {
  const { NOTIFY_SOCKET } = process.env
  if (!NOTIFY_SOCKET) return
  const word = state === 'ready' ? '--ready' : 'STOPPING=1'
  // A line break would begin another variable.
  const line = status.replaceAll(/\s+/g, ' ').slice(0, 200)
  await exec('systemd-notify', [word, `--status=${line}`], {
    timeoutMs: timeoutMs,
    env: { ...childEnvironment, NOTIFY_SOCKET },
  }).catch((error: Error) => void process.stderr.write(`svc3: cannot notify systemd: ${error.message}\n`))
}
