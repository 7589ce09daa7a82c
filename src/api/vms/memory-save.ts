// Whether a save or commit of a VM keeps its memory, as far as the service knows before the node captures the VM.
import * as t from 'typebox'

export const MemorySave = t.Object(
  {
    saved: t.Optional(t.Boolean({ description: 'Absent if the service cannot know' })),
    reason: t.Optional(t.String({ description: 'Why memory is not saved, or what it depends on' })),
  },
  { title: 'MemorySave' },
)
export type MemorySave = t.Static<typeof MemorySave>
