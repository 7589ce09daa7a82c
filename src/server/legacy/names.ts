// Renames fields in validation errors to the names that 2.4.x clients use.
import { ApiError, type Cause } from '../../api/errors.ts'
import type { OperationId } from '../../api/index.ts'

type Names = Readonly<Record<string, string>>

const shape: Names = {
  name: 'orka_vm_name', image: 'orka_base_image', cpu: 'orka_cpu_core', iso: 'iso_image', vncConsole: 'vnc_console',
  systemSerial: 'system_serial', legacyIO: 'io_boost', netBoost: 'net_boost', gpuPassthrough: 'gpu_passthrough',
  tagRequired: 'tag_required',
} // biome-ignore format: a table
const copied: Names = { name: 'new_name' }

/** Fields of an operation → fields of the legacy call that it carries out. */
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
  const told = causes.map((cause) => renamed(cause, table))
  return new ApiError(error.reason, told.map(({ message }) => message).join('; '), { ...error.options, causes: told })
}

/** Words of a sentence that are also fields ("the image") stay, but for the first, which is the field. */
function renamed({ field, reason, message }: Cause, table: Names): Cause {
  const [first = '', ...rest] = field.split('.')
  const name = table[first] ?? first
  const begun = message.startsWith(first) ? name + message.slice(first.length) : message
  const whole = begun.replaceAll(/\b[a-z]+[A-Z]\w*/g, (word) => table[word] ?? word)
  return { field: [name, ...rest].join('.'), reason, message: whole }
}
