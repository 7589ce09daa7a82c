// Finishes interrupted deletions of namespaces, and removes leftovers of deleted ones.
import { type Loop, startLoop } from '../platform/loop.ts'
import { removeNamespace, removeNamespaceLeftovers } from '../store/records/namespaces.ts'
import { ignoreLost } from '../store/store.ts'
import type { Controller } from './controller.ts'

const everyMs = 30_000

export function collectNamespaces({ collections, log }: Controller): Loop {
  return startLoop({
    everyMs,
    failed: (error) => log.error('collect-namespaces failed and will run again', {}, error),
    run: async (signal) => {
      for (const entry of collections.namespaces.list()) {
        if (signal.aborted) return
        if (entry.value.isTerminating) await removeNamespace(collections, entry).catch(ignoreLost)
      }
      await removeNamespaceLeftovers(collections)
    },
  })
}
