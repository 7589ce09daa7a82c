// The logic of the deploy form: validation by the rules of the service, and the request.
import type { VmDeployment } from '../../../src/api/vms/vm-deployment.ts'
import { parseTtl } from '../../../src/rules/durations.ts'
import { isVmName, vmNameRule } from '../../../src/rules/names.ts'
import { parseReservedPorts } from '../../../src/rules/ports.ts'

export const emptyForm = {
  name: '',
  image: '',
  vmConfig: '',
  cpu: '',
  memory: '',
  node: '',
  tag: '',
  tagRequired: false,
  scheduler: 'default',
  ttl: '',
  reservedPorts: '',
  labels: '',
  metadata: '',
  userdata: '',
  iso: '',
  noScreen: false,
  cold: false,
  legacyIO: false,
  noNetBoost: false,
  gpuPassthrough: false,
}

type DeployForm = Readonly<typeof emptyForm>
type Faults = Partial<Record<keyof DeployForm, string>>

/** Parses `a=b, c=d`; `wrong` is the first part that is not a pair. */
function parsePairs(text: string): { pairs: Record<string, string>; wrong: string | undefined } {
  const pairs: Record<string, string> = {}
  for (const part of text.split(',').map((each) => each.trim())) {
    if (part === '') continue
    const [, key, value] = /^([^=\s]+)=(.*)$/.exec(part) ?? []
    if (key === undefined || value === undefined) return { pairs, wrong: part }
    pairs[key] = value
  }
  return { pairs, wrong: undefined }
}

const isNumber = (text: string): boolean => /^\d+(\.\d)?$/.test(text)
const isWhole = (text: string): boolean => /^\d+$/.test(text)

export function faultsOf(form: DeployForm): Faults {
  const pairFault = (text: string): string | undefined => {
    const { wrong } = parsePairs(text)
    return wrong === undefined ? undefined : `Invalid pair "${wrong}". Use key=value`
  }
  /** Empty fields are valid. */
  const unless = (isValid: boolean, text: string, fault: string) => (text === '' || isValid ? undefined : fault)
  const faults = {
    name: unless(isVmName(form.name), form.name, `Invalid name. Use ${vmNameRule}`),
    image: form.image.trim() === '' && form.vmConfig === '' ? 'Choose an image or a configuration' : undefined,
    cpu: unless(isWhole(form.cpu), form.cpu, 'Enter a whole number'),
    memory: unless(isNumber(form.memory), form.memory, 'Enter a number'),
    ttl: unless(parseTtl(form.ttl) !== undefined, form.ttl, 'Enter a duration such as 30m, 2h or 7d'),
    reservedPorts: parseReservedPorts(form.reservedPorts).causes[0]?.message,
    labels: pairFault(form.labels),
    metadata: pairFault(form.metadata),
  }
  return Object.fromEntries(Object.entries(faults).filter(([, fault]) => fault !== undefined))
}

const toBase64 = (text: string): string =>
  btoa(Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join(''))

/** Returns the fields that were filled in. The configuration or the service decides the others. */
export function deploymentOf(form: DeployForm): VmDeployment {
  const { pairs: labels } = parsePairs(form.labels)
  const { pairs: metadata } = parsePairs(form.metadata)
  const text = (key: 'image' | 'vmConfig' | 'node' | 'tag' | 'ttl' | 'reservedPorts' | 'iso') =>
    form[key].trim() === '' ? {} : { [key]: form[key].trim() }
  return {
    ...(form.name === '' ? { name: 'vm', shouldGenerateName: true } : { name: form.name }),
    ...text('image'),
    ...text('vmConfig'),
    ...(form.cpu !== '' && { cpu: Number(form.cpu) }),
    ...(form.memory !== '' && { memory: Number(form.memory) }),
    ...text('node'),
    ...text('tag'),
    ...(form.tagRequired && { tagRequired: true }),
    ...(form.scheduler !== 'default' && { scheduler: form.scheduler }),
    ...text('ttl'),
    ...text('reservedPorts'),
    ...(Object.keys(labels).length > 0 && { labels }),
    ...(Object.keys(metadata).length > 0 && { metadata }),
    ...(form.userdata !== '' && { userdata: toBase64(form.userdata) }),
    ...text('iso'),
    ...(form.noScreen && { vncConsole: false }),
    ...(form.cold && { cold: true }),
    ...(form.legacyIO && { legacyIO: true }),
    ...(form.noNetBoost && { netBoost: false }),
    ...(form.gpuPassthrough && { gpuPassthrough: true }),
  }
}
