// Finishes interrupted deletions of namespaces, and removes leftovers of deleted ones.
import type { Loop } from '../platform/loop.ts'
import { removeNamespace, removeNamespaceLeftovers } from '../store/records/namespaces.ts'
import { ignoreLost } from '../store/store.ts'
import { type Controller, startController } from './controller.ts'

const everyMs = 30_000

export function collectNamespaces(controller: Controller): Loop {
  const { collections } = controller
  return startController(controller, 'collect-namespaces', {
    everyMs,
    run: async (signal) => {
      for (const entry of collections.namespaces.list()) {
        if (signal.aborted) return
        if (entry.value.isTerminating) await removeNamespace(collections, entry).catch(ignoreLost)
      }
      await removeNamespaceLeftovers(collections)
    },
  })
}
