// Turns a legacy call and its replacement into what the `migrate` commands print.
import {
  commandsFor,
  documentationOf,
  type ExampleRequest,
  reasonFor,
  requestsFor,
  requestText,
} from '../../../legacy/advice.ts'
import type { MappedCall } from '../../../legacy/find.ts'
import type { Confidence } from '../../../legacy/scan/finding.ts'
import type { OutputColumn } from '../../output/output.ts'

export interface Advised {
  readonly call: string
  readonly isReplaced: boolean
  /** The requests that replace the call, with example values. */
  readonly requests: readonly ExampleRequest[]
  readonly commands: readonly string[]
  /** Why there is no replacement. */
  readonly reason?: string
  readonly documentation: string
}

/** A call that was found in a file. */
export interface Scanned extends Advised {
  readonly file: string
  readonly line: number
  readonly column: number
  readonly text: string
  readonly confidence: Confidence
  /** How often a log has it. */
  readonly count?: number
}

export function advised({ row, call }: MappedCall, namespace?: string): Advised {
  const reason = reasonFor(row)
  return {
    call: `${call.method} ${call.path}`,
    isReplaced: row.fate === 'replaced',
    requests: requestsFor(row, call, namespace),
    commands: commandsFor(row, call),
    ...(reason !== undefined && { reason }),
    documentation: documentationOf(row),
  }
}

export const replacementText = ({ reason, requests }: Advised): string =>
  reason ?? requests.map(requestText).join(' and ')

export const advisedColumns: readonly OutputColumn<Advised>[] = [
  { header: 'CALL', cell: ({ call }) => call },
  { header: 'REPLACEMENT', cell: replacementText },
  { header: 'COMMAND', cell: ({ commands }) => commands.join('; ') || undefined },
  { header: 'DOCUMENTATION', wide: true, cell: ({ documentation }) => documentation },
]
