// Names the options of a command in place of the fields of a request that the service refused.
import type { ApiError, Cause } from '../api/errors.ts'

/** Fields whose option is not their name with dashes. */
const optionByField: Readonly<Record<string, string>> = {
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

const dashed = (field: string): string => field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** The message of the error, with options in place of fields. `options` has the long names of the command's options. */
export function messageWithOptions(error: ApiError, options: readonly string[]): string {
  const { causes = [] } = error.options
  const translated = ({ field, message }: Cause): string => {
    const [first = ''] = field.split('.')
    const option = optionByField[first] ?? dashed(first)
    return message.startsWith(`${field} `) && options.includes(option)
      ? `--${option}${message.slice(field.length)}`
      : message
  }
  // A message that says more than its causes stays as it was.
  const isListOfCauses = causes.length > 0 && error.message === causes.map(({ message }) => message).join('; ')
  return isListOfCauses ? causes.map(translated).join('; ') : error.message
}

/** Whether the only fault of the request is that it names records that do not exist. */
export const isAboutMissing = ({ options: { causes = [] } }: ApiError): boolean =>
  causes.length > 0 && causes.every(({ reason }) => reason === 'FieldValueNotFound')
