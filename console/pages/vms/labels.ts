// Labels as somebody types them for several VMs at once. Pure.
import { type LabelChange, parseLabelChange } from '../../../src/client/relabel.ts'

const typedLabels = (typed: string): readonly string[] =>
  typed
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '')

export function labelFault(typed: string): string | undefined {
  const texts = typedLabels(typed)
  const bad = texts.find((each) => !parseLabelChange(each))
  if (bad !== undefined) return `Invalid label "${bad}"`
  return texts.length === 0 ? 'Enter at least one label' : undefined
}

export const labelChanges = (typed: string): readonly LabelChange[] =>
  typedLabels(typed).flatMap((each) => parseLabelChange(each) ?? [])
