// A WebSocket to the screen of a VM that has sent data. Some VMs have a VNC port with nothing behind it, for example
// simulated VMs and VMs still in firmware, so noVNC gets only sockets that have answered.

interface Answering {
  readonly socket: WebSocket
  /** Dispatches the first message again, to the handler that is attached now. */
  readonly replay: () => void
}

/**
 * Rejects if the socket closes without data. The caller must attach its handlers synchronously, or it misses messages.
 */
export function answeringSocket(url: string, signal: AbortSignal): Promise<Answering> {
  const socket = new WebSocket(url)
  socket.binaryType = 'arraybuffer'
  signal.addEventListener('abort', () => socket.close())
  return new Promise((resolve, reject) => {
    socket.onclose = () => reject(new Error('closed'))
    socket.onmessage = ({ data }) =>
      resolve({ socket, replay: () => socket.dispatchEvent(new MessageEvent('message', { data })) })
  })
}
