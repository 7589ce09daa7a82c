// The API client of the console: the one that the command line uses, over fetch and one WebSocket.
import { createClient } from '../../src/client/client.ts'
import { connectionLost, connectionOpened } from './connection.ts'
import { pageTransport } from './page-transport.ts'
import { checkSession } from './session.ts'
import { serviceUrl } from './urls.ts'
import { watchingTransport } from './watch-socket.ts'

function onClose(): void {
  connectionLost()
  // The server closes the socket when the session ends.
  void checkSession()
}

export const client = createClient({
  baseUrl: serviceUrl,
  transport: watchingTransport({ serviceUrl, onOpen: connectionOpened, onClose }, pageTransport),
  // Deployments respond only when the VM runs.
  timeoutMs: 660_000,
})
