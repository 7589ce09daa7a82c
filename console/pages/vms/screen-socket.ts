// A connection to the screen of a VM that has said something: many a VM has a port for its screen and nothing behind it, a simulated
// one for example, or one whose firmware is not there yet. noVNC is told of those that answer only.

interface Answering {
  readonly socket: WebSocket
  /** Gives what came first to whoever reads the socket now. */
  readonly replay: () => void
}

/** Rejects when it is closed without a word. The caller has to read on before anything else comes: at once. */
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
