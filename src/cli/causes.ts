// Translates what the service says about fields of a request into options of the command line.
import type { ApiError, Cause } from '../api/errors.ts'

/** Fields that have another name here. */
const otherwise: Readonly<Record<string, string>> = {
  customVMMetadata: 'metadata',
  displayDPI: 'display-dpi',
  gpuPassthrough: 'gpu',
  labels: 'label',
  legacyIO: 'legacy-io',
  reservedPorts: 'ports',
  serviceaccounts: 'serviceaccount',
  shouldGenerateName: 'generate-name',
  users: 'user',
  vmConfig: 'config',
}

/** Values that are asked for by an option of another name. */
const byOption: Readonly<Record<string, string>> = { 'vncConsole: false': '--disable-vnc' }

const inOptions = (text: string): string =>
  Object.entries(byOption).reduce((whole, [value, option]) => whole.replaceAll(value, option), text)

const dashed = (field: string): string => field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** The message, with the option in place of the field that it begins with. `options`: the long names of the command's. */
export function messageOf(error: ApiError, options: readonly string[]): string {
  const { causes = [] } = error.options
  if (causes.length === 0) return error.message
  const own = ({ field, message }: Cause): string => {
    const [first = ''] = field.split('.')
    const option = otherwise[first] ?? dashed(first)
    return message.startsWith(`${field} `) && options.includes(option)
      ? `--${option}${inOptions(message.slice(field.length))}`
      : message
  }
  // Only where the message is made of them: one that says something else is better than its parts.
  return error.message === causes.map(({ message }) => message).join('; ') ? causes.map(own).join('; ') : error.message
}

/** A hint about the body of a request helps nobody here: the line of usage does. */
export function hintHere(hint: string | undefined, helpLine: string): string | undefined {
  if (hint?.includes('details.causes')) return helpLine || 'Correct the values named above and try again'
  return hint?.replaceAll(/\b([Ss])et "\w+": true \((--[\w-]+)\)/g, (_, first: string, option: string) =>
    first === 'S' ? `Use ${option}` : `use ${option}`,
  )
}

/** Nothing else is wrong with the request than that what it names is not there. */
export const isAboutMissing = ({ options: { causes = [] } }: ApiError): boolean =>
  causes.length > 0 && causes.every(({ reason }) => reason === 'FieldValueNotFound')
