// The NODE and TAG arguments of the node commands.
import { isTag } from '../../../rules/names.ts'
import type { Argument } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'

type Arguments = Readonly<Record<string, Argument>>

export const nodeArgument = {
  node: { value: 'NODE', description: 'name of the node', required: true },
} as const satisfies Arguments

export const tagArguments = {
  ...nodeArgument,
  tag: { value: 'TAG', description: 'at most 63 letters, digits, dashes, underscores and periods', required: true },
} as const satisfies Arguments

export function checkTag(tag: string): string {
  if (isTag(tag)) return tag
  throw new UsageError(
    `Invalid tag "${tag}"`,
    `${tagArguments.tag.description}, starting and ending with a letter or digit`,
  )
}
