// Connects noVNC to the screen of a VM. Some VMs have a VNC port with nothing behind it, for example simulated VMs and VMs
// still in firmware, so noVNC gets only sockets that have sent data.
import RFB from '@novnc/novnc'
import { connectVm } from '../../../src/api/vms/vms.ts'
import { socketUrl } from '../../api/urls.ts'
import { pathOf } from '../../show-as/requests.ts'
import type { Named } from '../paths.ts'

/** `onOpen` sets up the client before it handles the first message. Rejects if the socket closes without data. */
export async function openScreen(
  target: HTMLElement,
  { namespace, name }: Named,
  signal: AbortSignal,
  onOpen: (client: RFB) => void,
): Promise<void> {
  const path = pathOf(connectVm, { params: { namespace, vm: name }, query: { port: 'vnc' } })
  const socket = new WebSocket(socketUrl(path))
  socket.binaryType = 'arraybuffer'
  signal.addEventListener('abort', () => socket.close())
  const { data } = await new Promise<MessageEvent>((resolve, reject) => {
    socket.onmessage = resolve
    socket.onclose = () => reject(new Error('closed'))
  })
  if (signal.aborted) return
  // No await from here on: the client must receive every further message.
  const client = new RFB(target, socket)
  client.background = 'transparent'
  onOpen(client)
  socket.dispatchEvent(new MessageEvent('message', { data }))
}
