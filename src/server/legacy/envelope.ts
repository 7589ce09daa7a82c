// Answers of 2.4.x: one envelope for everything. A refusal stands in `errors` and in the status, because one client looks
// only at the first and others only at the second.
import type { ApiError } from '../../api/errors.ts'
import { commandsFor, documentationOf, operationsText } from '../../legacy/advice.ts'
import type { LegacyCall, LegacyRow } from '../../legacy/row.ts'

export interface Envelope {
  readonly message: string
  readonly help: Readonly<Record<string, unknown>>
  readonly errors: readonly { readonly message: string }[]
  readonly [field: string]: unknown
}

/** What a call answers: fields beside the message. */
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

export const refusalEnvelope = ({ message, options }: ApiError, fields: object = {}): Envelope => ({
  message: '',
  help: { ...(options.hint !== undefined && { hint: options.hint }) },
  errors: [{ message }],
  ...fields,
})

/** Of a call that has nothing behind it any more. */
export function goneEnvelope({ row, call }: { row: LegacyRow; call: LegacyCall }, why: string): Envelope {
  const commands = commandsFor(row, call)
  const help = {
    documentation: documentationOf(row),
    ...(row.operations.length > 0 && { use: operationsText(row.operations) }),
    ...(commands.length > 0 && { commands }),
  }
  return { message: '', help, errors: [{ message: `${call.method} ${call.path} ${why}; see ${documentationOf(row)}` }] }
}
