// What replaces a call of the 2.4.x API: the same table that the gateway and `svc3 migrate` use. Pure.
import { commandsFor, operationsText, reasonFor } from '../../../src/legacy/advice.ts'
import { legacyRows } from '../../../src/legacy/map.ts'

/** The endpoint as usage reports write it: `POST /resources/vm/deploy`. */
export function replacementFor(endpoint: string): string | undefined {
  for (const row of legacyRows) {
    const call = row.calls.find(({ method, path }) => `${method} ${path}` === endpoint)
    if (!call) continue
    return commandsFor(row, call)[0] ?? reasonFor(row) ?? operationsText(row.operations)
  }
  return undefined
}
