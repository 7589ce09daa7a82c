// Arguments, options and checks that commands about images and ISOs share.
import { imageNameRule, isImageName } from '../../../rules/image-names.ts'
import type { Options } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'

export const described = {
  description: { type: 'string', short: 'd', value: 'TEXT', description: 'What it is, for people' },
} as const satisfies Options

export const named = {
  name: { type: 'string', value: 'NAME', defaultText: 'that of the file', description: 'What to call it' },
  type: {
    type: 'choice',
    choices: ['amd64', 'arm64'],
    default: 'amd64',
    description: 'Architecture of the VMs it is for',
  },
} as const satisfies Options

export const bootedBy = {
  os: {
    type: 'choice',
    choices: ['macos', 'linux', 'other'],
    description: 'Which guest is on the disk, or is to be',
  },
  firmware: {
    type: 'choice',
    choices: ['bios', 'uefi'],
    description: 'What boots the disk; that of old PCs for amd64 when left out, uefi for macOS',
  },
} as const satisfies Options

export const saved = {
  file: {
    type: 'string',
    short: 'f',
    value: 'FILE',
    defaultText: 'its name, in this folder',
    description: 'Where to save it',
  },
  force: { type: 'boolean', description: 'Replace a file that is there' },
} as const satisfies Options

/** As an argument or as an option, as people expect either. */
export function givenDescription(argument: string | undefined, option: string | undefined): string {
  const text = argument ?? option
  if (text === undefined) throw new UsageError('TEXT is missing: what it is, for people')
  if (argument === undefined || option === undefined || argument === option) return text
  throw new UsageError('the description is given twice', 'write it as TEXT or with --description, not both')
}

/** The server's own rule and message, without a request. */
export function checkName(name: string, word: string, hint?: string): string {
  if (isImageName(name)) return name
  throw new UsageError(`"${name}" is no name for an ${word}: ${imageNameRule}`, hint ?? 'choose another name')
}
