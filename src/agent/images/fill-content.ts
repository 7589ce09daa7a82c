// A copy of an image out of content that somebody has: chunks go to the node's store and to the disk at once. The disk is on
// the disk when this is over. The chunks, which can be had again, are made lasting after it; one that a loss of power
// damages is found out by its size or its digest, and fetched again.
import { createSyncing } from '../../images/content/syncing.ts'
import { type MakeContentOptions, makeContent } from './content.ts'
import { fetchedContent, type SourceOptions } from './content-source.ts'

type FillOptions = Omit<SourceOptions, 'syncing'> & Omit<MakeContentOptions, 'source'>

/** `lasting`: until the chunks are, too. Never fails. */
export async function fillContent(
  folder: string,
  content: string,
  options: FillOptions,
): Promise<{ readonly lasting: Promise<void> }> {
  const syncing = createSyncing({ isLater: true })
  const { name, signal, progress, opened, memoryFirst } = options
  const source = fetchedContent({ ...options, syncing })
  let lasting = Promise.resolve()
  try {
    await makeContent(folder, content, { source, name, signal, progress, opened, memoryFirst })
  } finally {
    lasting = syncing.end().catch(() => undefined)
  }
  return { lasting }
}
