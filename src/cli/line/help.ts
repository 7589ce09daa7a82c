// Renders help as text from the table of commands.

import { withProgramName } from '../called-as.ts'
import {
  type Command,
  type CommandEntry,
  type CommandTable,
  type Example,
  early,
  everywhere,
  type Option,
} from '../command.ts'
import { usageLine, valueName } from './parse.ts'
import { synonymsIn } from './synonyms.ts'

type Row = readonly [string, string]

/** The width of a usual terminal, which would break longer lines within a word. */
const lineLength = 80
/** Longer names get their own line. */
const longestLeft = 36

const section = (title: string, rows: readonly Row[], least = 0): string[] => {
  if (rows.length === 0) return []
  const width = Math.max(least, ...rows.map(([left]) => left.length).filter((length) => length <= longestLeft))
  return ['', `${title}:`, ...rows.flatMap(([left, right]) => rowLines(left, right, width))]
}

function rowLines(left: string, right: string, width: number): string[] {
  const [first = '', ...rest] = wrapped(right, lineLength - width - 5)
  const below = (text: string): string => `${' '.repeat(width + 5)}${text}`
  return left.length > width
    ? [`  ${left}`, ...[first, ...rest].map(below)]
    : [`  ${left.padEnd(width)}   ${first}`.trimEnd(), ...rest.map(below)]
}

const text = (lines: readonly string[]): string => `${lines.join('\n')}\n`

export const programSummary = 'svc3 runs macOS virtual machines on a cluster of Apple silicon and Intel hosts.'

/** What a new user needs, in the order of use. */
export const tour: readonly Example[] = [
  { line: 'svc3 login', does: 'Log in (not needed with svc3 dev)' },
  { line: 'svc3 image list', does: 'List the images you can deploy' },
  { line: 'svc3 vm deploy demo --image IMAGE', does: 'Deploy a VM named demo and wait until it runs' },
  { line: 'svc3 vm list', does: 'Show its address and ports' },
  { line: 'svc3 vm ssh demo', does: 'Open a shell in the VM' },
  { line: 'svc3 vm save demo my-image --wait', does: 'Save its disk as a new image' },
  { line: 'svc3 regcred add https://REGISTRY -u USER', does: 'Store registry credentials; asks for the password' },
  { line: 'svc3 vm push demo REGISTRY/TEAM/NAME:TAG --wait', does: 'Push its disk to the registry (Apple silicon)' },
  { line: 'svc3 vm delete demo', does: 'Delete the VM and its disk' },
]

/** The groups of commands in help. Each command is in one of them. */
const sections: readonly (readonly [string, string])[] = [
  ['Virtual machines', 'vm vm-config pool runner-pool image imagecache iso remote-image remote-iso'],
  ['Access', 'login logout whoami user namespace rolebinding serviceaccount registrycredential'],
  ['Cluster', 'node quota usage events console dev server agent'],
  ['This program', 'config completion migrate version help'],
]

export function programHelp(calledAs: string, table: CommandTable): string {
  const parts = sections.map(([title, words]): [string, Row[]] => {
    const own = words.split(' ').flatMap((word) => (table[word] ? [[word, table[word]]] : []))
    return [title, commandRows(Object.fromEntries(own))]
  })
  const width = Math.max(...parts.flatMap(([, rows]) => rows.map(([left]) => left.length)))
  return text([
    programSummary,
    '',
    `Usage: ${calledAs} COMMAND [OPTIONS]`,
    ...section(
      'A VM from start to end',
      tour.map(({ line, does }): Row => [withProgramName(line, calledAs), withProgramName(does, calledAs)]),
    ),
    ...parts.flatMap(([title, rows]) => section(title, rows, width)),
    ...section('Options', [
      ...Object.entries(early).map(optionRow),
      ['    --version', 'Show client and server versions'],
    ]),
    '',
    `Run ${calledAs} COMMAND --help for options and examples.`,
  ])
}

export function groupHelp(calledAs: string, path: readonly string[], table: CommandTable, summary: string): string {
  const line = [calledAs, ...path].join(' ')
  return text([
    summary,
    '',
    `Usage: ${line} COMMAND [OPTIONS]`,
    ...section('Commands', commandRows(table)),
    ...section('Options', [['-h, --help', everywhere.help.description]]),
    '',
    ...shortWords(table),
    `Run ${line} COMMAND --help for options and examples.`,
  ])
}

/** The synonyms that help mentions. */
const usual = ['ls', 'rm', 'describe']

function shortWords(table: CommandTable): string[] {
  const texts = synonymsIn(table).flatMap(([word, command]) => (usual.includes(word) ? [`${word} (${command})`] : []))
  return texts.length === 0 ? [] : [`Also accepted: ${texts.join(', ')}.`]
}

const commandRows = (table: CommandTable): Row[] =>
  Object.entries(table)
    .filter(([, entry]) => !entry.hidden)
    .map(([name, entry]): Row => [names(name, entry.aliases), entry.summary])
const names = (name: string, aliases: readonly string[] = []): string => [name, ...aliases].join(', ')

/** Help of a command, which may also be a group. */
export function commandHelp(calledAs: string, path: readonly string[], command: Command, entry: CommandEntry): string {
  const line = usageLine([calledAs, ...path].join(' '), command.arguments)
  const args = Object.values(command.arguments).map((argument): Row => [argument.value, argument.description])
  const own = Object.entries(command.options).map(optionRow)
  const shared = Object.entries(everywhere).map(optionRow)
  const others = 'commands' in entry ? commandRows(entry.commands) : []
  return text([
    entry.summary,
    '',
    `Usage: ${line}`,
    ...(others.length > 0 ? [`       ${[calledAs, ...path].join(' ')} COMMAND [OPTIONS]`] : []),
    ...(command.description ? ['', ...wrapped(command.description.replaceAll('\n', ' '))] : []),
    ...section('Commands', others),
    ...section('Arguments', args),
    ...section('Options', [...own, ...shared]),
    '',
    'Examples:',
    ...command.examples.flatMap(({ line, does }) => [`  # ${does}`, `  ${withProgramName(line, calledAs)}`]),
  ])
}

/** Breaks a text between words. */
function wrapped(text: string, length = lineLength): string[] {
  if (text.length <= length) return [text]
  const before = text.lastIndexOf(' ', length)
  const end = before > 0 ? before : text.indexOf(' ', length)
  return end <= 0 ? [text] : [text.slice(0, end), ...wrapped(text.slice(end + 1), length)]
}

export function optionRow([name, option]: readonly [string, Option]): Row {
  const short = option.short ? `-${option.short}, ` : '    '
  return [`${short}--${name}${valueText(option)}`, option.description + remark(option)]
}

const valueText = (option: Option): string => (option.type === 'boolean' ? '' : ` ${valueName(option)}`)

function remark(option: Option): string {
  if (option.type === 'boolean') return ''
  if ('required' in option && option.required) return ' (required)'
  const shown = option.defaultText ?? option.default
  const repeat = option.type === 'string' && option.repeatable ? '; repeatable' : ''
  return shown === undefined ? repeat : ` (default ${shown})${repeat}`
}
