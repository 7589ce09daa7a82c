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
  const ports = parseReservedPorts(form.reservedPorts).causes[0]?.message
  const all: Faults = {
    ...(form.name !== '' && !isVmName(form.name) && { name: `Invalid name. Use ${vmNameRule}` }),
    ...(form.image.trim() === '' && form.vmConfig === '' && { image: 'Choose an image or a configuration' }),
    ...(form.cpu !== '' && !isWhole(form.cpu) && { cpu: 'Enter a whole number' }),
    ...(form.memory !== '' && !isNumber(form.memory) && { memory: 'Enter a number' }),
    ...(form.ttl !== '' && parseTtl(form.ttl) === undefined && { ttl: 'Enter a duration such as 30m, 2h or 7d' }),
  }
  const [labels, metadata] = [pairFault(form.labels), pairFault(form.metadata)]
  return {
    ...all,
    ...(ports !== undefined && { reservedPorts: ports }),
    ...(labels !== undefined && { labels }),
    ...(metadata !== undefined && { metadata }),
  }
}

const toBase64 = (text: string): string => btoa(String.fromCharCode(...new TextEncoder().encode(text)))

/** Only fields that were filled in. The configuration or the service decides the others. */
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
