// Many watches on one connection.
import type * as api from '../../../api/service/watches.ts'
import type { Handlers, HandlersOf } from '../../handlers.ts'
import { serveWatches } from '../../lists/multiplex.ts'
import type { Services } from '../../services.ts'

/** `table` has the handlers of the lists. */
export function watches(services: Services, table: () => Handlers): HandlersOf<typeof api> {
  return {
    watchAll: ({ principal, caller }) => ({
      isFramed: true,
      take: (socket) => serveWatches(socket, principal, { services, table: table(), caller }),
      drop: () => undefined,
    }),
  }
}
