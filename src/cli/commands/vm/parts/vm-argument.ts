// The VM argument of the commands about one VM.
import type { Argument } from '../../../command.ts'

export const vmArgument = {
  vm: { value: 'VM', description: 'name of the VM', required: true },
} as const satisfies Readonly<Record<string, Argument>>
