// The content of an image of svc3 in a registry, as nodes fetch it.
import type { RemoteImage } from '../../../src/oci/artifact/image-target.ts'
import { inspectImage } from '../../../src/oci/inspect.ts'

export async function openRemoteImage(...args: Parameters<typeof inspectImage>): Promise<RemoteImage> {
  const { ours } = await inspectImage(...args)
  if (!ours) throw new Error('it is an image of tart')
  return ours
}
