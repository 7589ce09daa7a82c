// A legacy call and what replaces it, as the commands of `migrate` print it.
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
  /** Method and path of 2.4.x. */
  readonly call: string
  readonly isReplaced: boolean
  /** What takes its place, with values that it could have. */
  readonly requests: readonly ExampleRequest[]
  readonly commands: readonly string[]
  /** Why nothing does. */
  readonly reason?: string
  readonly documentation: string
}

/** One that was found. */
export interface Scanned extends Advised {
  readonly file: string
  readonly line: number
  readonly column: number
  /** As it stands there. */
  readonly text: string
  readonly confidence: Confidence
  /** In a log: how often. */
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
