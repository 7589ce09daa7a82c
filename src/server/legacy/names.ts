// Renames fields in validation errors to the names that 2.4.x clients use.
import { ApiError, type Cause } from '../../api/errors.ts'
import type { OperationId } from '../../api/index.ts'

type Names = Readonly<Record<string, string>>

/** Fields that have the same meaning in configurations and deployments. */
export const sharedNames = {
  iso: 'iso_image',
  vncConsole: 'vnc_console',
  systemSerial: 'system_serial',
  gpuPassthrough: 'gpu_passthrough',
  tag: 'tag',
  tagRequired: 'tag_required',
  scheduler: 'scheduler',
} as const
const shape: Names = {
  ...sharedNames,
  name: 'orka_vm_name',
  image: 'orka_base_image',
  cpu: 'orka_cpu_core',
  legacyIO: 'io_boost',
  netBoost: 'net_boost',
}
const copied: Names = { name: 'new_name' }

/** Operation → its fields, and the fields of the legacy call. */
const names: Readonly<Partial<Record<OperationId, Names>>> = {
  createVmConfig: shape,
  deployVm: { ...shape, node: 'orka_node_name', reservedPorts: 'reserved_ports', metadata: 'vm_metadata' },
  saveVm: { name: 'new_name', imageName: 'new_name' },
  copyImage: copied,
  copyIso: copied,
  pullRemoteImage: copied,
  pullRemoteIso: copied,
  generateImage: { name: 'file_name', size: 'file_size' },
}

export function inLegacyWords(operation: string, error: ApiError): ApiError {
  const table = names[operation as OperationId]
  const { causes } = error.options
  if (!table || !causes) return error
  const legacyCauses = causes.map((cause) => renamed(cause, table))
  const message = legacyCauses.map((cause) => cause.message).join('; ')
  return new ApiError(error.reason, message, { ...error.options, causes: legacyCauses })
}

/** Renames the field at the start, and words in camel case; other words, like "image", may not be meant as fields. */
function renamed({ field, reason, message }: Cause, table: Names): Cause {
  const [first = '', ...rest] = field.split('.')
  const name = table[first] ?? first
  const start = message.startsWith(first) ? name + message.slice(first.length) : message
  const whole = start.replaceAll(/\b[a-z]+[A-Z]\w*/g, (word) => table[word] ?? word)
  return { field: [name, ...rest].join('.'), reason, message: whole }
}
