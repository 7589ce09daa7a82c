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

/** What a call answers: fields in addition to the message. */
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

/** `details.causes` is in answers of 3.0 alone; here the message names the fields. */
const hintOf = (hint: string): string => (hint.includes('details.causes') ? 'Correct these fields' : hint)

export const refusalEnvelope = ({ message, options: { hint } }: ApiError, help: object = {}): Envelope => ({
  message: '',
  help: { ...help, ...(hint !== undefined && { hint: hintOf(hint) }) },
  errors: [{ message }],
})

/** Of a call that has nothing behind it any more. */
export function goneEnvelope({ row, call }: { row: LegacyRow; call: LegacyCall }, why: string, page: string): Envelope {
  const commands = commandsFor(row, call)
  const help = {
    documentation: page,
    ...(row.operations.length > 0 && { use: operationsText(row.operations) }),
    ...(commands.length > 0 && { commands }),
  }
  return { message: '', help, errors: [{ message: `${call.method} ${call.path} ${why}; see ${page}` }] }
}
