// Handler of multiplexed watches.
import type * as api from '../../../api/service/watches.ts'
import type { Principal } from '../../../auth/principal.ts'
import { realNamespace } from '../../../rules/names.ts'
import { type SpellingServices, spellingOf } from '../../gate/spelling.ts'
import { type MultiplexServices, serveWatches, type WatchedList } from '../../lists/multiplex.ts'
import type { HandlersOf } from '../../operations/handlers.ts'
import { listAt, type Operations } from '../../operations/invoke.ts'

export function watches(
  services: MultiplexServices & SpellingServices,
  operations: () => Operations,
): HandlersOf<typeof api> {
  const open = (path: string, principal: Principal): WatchedList => {
    const { operation, params } = listAt(path)
    const named = params.namespace
    const namespace = named === undefined ? '' : realNamespace(named, services.settings.compat.namespaceAliases)
    const call = operations().admit(operation, { principal, namespace, params, query: {} })
    return { operation, namespace, ...operations().list(operation, call) }
  }
  const spell = (path: string) => spellingOf(services, [/^\/api\/v1\/namespaces\/([^/]+)/.exec(path)?.[1]])
  return {
    watchAll: ({ principal, caller }) => ({
      isFramed: true,
      take: (socket) => serveWatches(socket, principal, { services, open, caller, spell }),
      drop: () => undefined,
    }),
  }
}
