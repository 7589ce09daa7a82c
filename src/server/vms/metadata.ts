// Metadata for a guest: four formats that clients send, normalized into one map.
import type { Cause } from '../../api/errors.ts'
import type { VmDeployment } from '../../api/vms/vm-deployment.ts'

const keyForm = /^[A-Za-z0-9_.-]{1,128}$/
const maxKeys = 256
const maxBytes = 256 * 1_024

export function metadataOf(body: VmDeployment): { metadata: Record<string, string>; problems: Cause[] } {
  const items = (body.vm_metadata?.items ?? []).map(({ key, value }) => [key, value] as const)
  const maps = [body.customMetadata, body.customVMMetadata].flatMap((map) => Object.entries(map ?? {}))
  const pairs = [...Object.entries(body.metadata ?? {}), ...items, ...maps]
  // Without a prototype: a key may have any name.
  const metadata: Record<string, string> = Object.create(null)
  const problems: string[] = []
  for (const [key, value] of pairs) {
    if (keyForm.test(key) && key !== '__proto__') metadata[key] = String(value)
    else problems.push(`"${key.slice(0, 50)}" cannot be a key: use letters, digits and _ . -`)
  }
  const bytes = Object.entries(metadata).reduce((sum, [key, value]) => sum + key.length + Buffer.byteLength(value), 0)
  if (Object.keys(metadata).length > maxKeys) problems.push(`at most ${maxKeys} keys`)
  if (bytes > maxBytes) problems.push(`at most ${maxBytes / 1_024} KiB in all`)
  return {
    metadata: { ...metadata },
    problems: problems.map((message) => ({
      field: 'customVMMetadata',
      reason: 'FieldValueInvalid',
      message: `metadata: ${message}`,
    })),
  }
}
