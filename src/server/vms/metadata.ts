// Merges the four formats in which clients send metadata for a guest.
import { type Cause, invalidField } from '../../api/errors.ts'
import type { VmDeployment } from '../../api/vms/vm-deployment.ts'
import { isMetadataKey, isReservedMetadataKey, metadataKeyRule } from '../../rules/guest-metadata.ts'

const maxKeys = 256
const maxBytes = 256 * 1_024

export function metadataOf(body: VmDeployment): { metadata: Record<string, string>; problems: Cause[] } {
  const items = (body.vm_metadata?.items ?? []).map(({ key, value }) => [key, value] as const)
  const maps = [body.customMetadata, body.customVMMetadata].flatMap((map) => Object.entries(map ?? {}))
  const pairs = [...Object.entries(body.metadata ?? {}), ...items, ...maps]
  // A key may have any name, such as __proto__.
  const metadata: Record<string, string> = Object.create(null)
  const problems: string[] = []
  for (const [key, value] of pairs) {
    if (isReservedMetadataKey(key)) problems.push(`${key} is set by the service and cannot be overridden`)
    else if (isMetadataKey(key)) metadata[key] = String(value)
    else problems.push(`invalid key "${key.slice(0, 50)}": ${metadataKeyRule}`)
  }
  const bytes = Object.entries(metadata).reduce((sum, [key, value]) => sum + key.length + Buffer.byteLength(value), 0)
  if (Object.keys(metadata).length > maxKeys) problems.push(`at most ${maxKeys} keys`)
  if (bytes > maxBytes) problems.push(`at most ${maxBytes / 1_024} KiB in all`)
  return {
    metadata: { ...metadata },
    problems: problems.map((message) => invalidField('customVMMetadata', `metadata: ${message}`)),
  }
}
