// Arguments, options and checks that commands about images and ISOs share.
import { imageNameRule, isImageName } from '../../../rules/image-names.ts'
import type { Options } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'

export const described = {
  description: { type: 'string', short: 'd', value: 'TEXT', description: 'Description for people' },
} as const satisfies Options

export const named = {
  name: { type: 'string', value: 'NAME', defaultText: 'name of the file', description: 'Name' },
  type: {
    type: 'choice',
    choices: ['amd64', 'arm64'],
    default: 'amd64',
    description: 'Architecture of the VMs',
  },
} as const satisfies Options

export const bootedBy = {
  os: {
    type: 'choice',
    choices: ['macos', 'linux', 'other'],
    description: 'Guest system on the disk',
  },
  firmware: {
    type: 'choice',
    choices: ['bios', 'uefi'],
    description: 'Firmware that boots the disk (default: bios on amd64, uefi for macOS)',
  },
} as const satisfies Options

export const saved = {
  file: {
    type: 'string',
    short: 'f',
    value: 'FILE',
    defaultText: 'its name, in the current folder',
    description: 'Path of the file',
  },
  force: { type: 'boolean', description: 'Overwrite an existing file' },
} as const satisfies Options

/** The description may be an argument or an option, because people try either. */
export function givenDescription(argument: string | undefined, option: string | undefined): string {
  const text = argument ?? option
  if (text === undefined) throw new UsageError('Specify TEXT or --description')
  if (argument === undefined || option === undefined || argument === option) return text
  throw new UsageError('The description is specified twice', 'Use either TEXT or --description')
}

/** Checks the name by the rule of the server, before any request. */
export function checkName(name: string, word: string, hint?: string): string {
  if (isImageName(name)) return name
  throw new UsageError(`Invalid ${word} name "${name}": ${imageNameRule}`, hint ?? 'Choose another name')
}
