// The replacement for a call of the 2.4.x API, from the table that the gateway and `svc3 migrate` use.
import { commandsFor, operationsText, reasonFor } from '../../../src/legacy/advice.ts'
import { legacyRows } from '../../../src/legacy/map.ts'

/** `endpoint` is written as in usage reports: `POST /resources/vm/deploy`. */
export function replacementFor(endpoint: string): string | undefined {
  for (const row of legacyRows) {
    const call = row.calls.find(({ method, path }) => `${method} ${path}` === endpoint)
    if (!call) continue
    return commandsFor(row, call)[0] ?? reasonFor(row) ?? operationsText(row.operations)
  }
  return undefined
}
