// The response envelope of 2.4.x. A refusal sets both `errors` and the status, because some clients check only one of
// them.
import type { ApiError } from '../../api/errors.ts'
import { commandsFor, operationsText } from '../../legacy/advice.ts'
import type { LegacyCall, LegacyRow } from '../../legacy/row.ts'

export interface Envelope {
  readonly message: string
  readonly help: Readonly<Record<string, unknown>>
  readonly errors: readonly { readonly message: string }[]
  readonly [field: string]: unknown
}

/** The fields of an answer, in addition to the message. */
export interface LegacyAnswer {
  readonly status?: number
  readonly message?: string
  readonly [field: string]: unknown
}

export const envelopeOf = ({ status: _, message = '', ...fields }: LegacyAnswer): Envelope => ({
  message,
  help: {},
  errors: [],
  ...fields,
})

/** An envelope as parts of its JSON text, each item of a list being one. */
export function* partsOf(envelope: Envelope): Generator<string> {
  let before = '{'
  for (const [name, value] of Object.entries(envelope)) {
    if (value === undefined) continue
    yield `${before}${JSON.stringify(name)}:${Array.isArray(value) ? '[' : JSON.stringify(value)}`
    if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) yield (index > 0 ? ',' : '') + JSON.stringify(item)
      yield ']'
    }
    before = ','
  }
  yield '}'
}

/** Legacy answers have no `details.causes`; their message names the fields. */
const hintOf = (hint: string): string => (hint.includes('details.causes') ? 'Correct these fields' : hint)

export const refusalEnvelope = ({ message, options: { hint } }: ApiError, help: object = {}): Envelope => ({
  message: '',
  help: { ...help, ...(hint !== undefined && { hint: hintOf(hint) }) },
  errors: [{ message }],
})

/** The answer to a removed call. */
export function goneEnvelope({ row, call }: { row: LegacyRow; call: LegacyCall }, why: string, page: string): Envelope {
  const commands = commandsFor(row, call)
  const help = {
    documentation: page,
    ...(row.operations.length > 0 && { use: operationsText(row.operations) }),
    ...(commands.length > 0 && { commands }),
  }
  return { message: '', help, errors: [{ message: `${call.method} ${call.path} ${why}; see ${page}` }] }
}
