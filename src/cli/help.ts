// Help as text, made from the table and from a command's own data.
import { type Command, everywhere, type Option } from './command.ts'
import type { CommandTable, Entry } from './commands/index.ts'
import { argumentsText } from './parse.ts'

type Row = readonly [string, string]

const section = (title: string, rows: readonly Row[]): string[] => {
  if (rows.length === 0) return []
  const width = Math.max(...rows.map(([left]) => left.length))
  return ['', `${title}:`, ...rows.map(([left, right]) => `  ${left.padEnd(width)}   ${right}`)]
}

const text = (lines: readonly string[]): string => `${lines.join('\n')}\n`

/** Help of the program (no words) or of a group. */
export function tableHelp(calledAs: string, path: readonly string[], table: CommandTable, summary: string): string {
  const line = [calledAs, ...path].join(' ')
  const options: Row[] = [['-h, --help', everywhere.help.description]]
  if (path.length === 0) options.push(['    --version', 'Show the versions of this program and of the server'])
  return text([
    summary,
    '',
    `Usage: ${line} COMMAND [OPTIONS]`,
    ...section('Commands', commandRows(table)),
    ...section('Options', options),
    '',
    `"${line} COMMAND --help" shows more about one of them.`,
  ])
}

const commandRows = (table: CommandTable): Row[] =>
  Object.entries(table)
    .filter(([, entry]) => !entry.hidden)
    .map(([name, entry]): Row => [names(name, entry.aliases), entry.summary])
const names = (name: string, aliases: readonly string[] = []): string => [name, ...aliases].join(', ')

/** Help of one command, which may be the word of a group, too. */
export function commandHelp(calledAs: string, path: readonly string[], command: Command, entry: Entry): string {
  const line = [calledAs, ...path, argumentsText(command.arguments), '[OPTIONS]'].filter(Boolean).join(' ')
  const args = Object.values(command.arguments).map((argument): Row => [argument.value, argument.description])
  const own = Object.entries(command.options).map(optionRow)
  const shared = Object.entries(everywhere).map(optionRow)
  const others = 'commands' in entry ? commandRows(entry.commands) : []
  return text([
    entry.summary,
    '',
    `Usage: ${line}`,
    ...(others.length > 0 ? [`       ${[calledAs, ...path].join(' ')} COMMAND [OPTIONS]`] : []),
    ...(command.description ? ['', command.description] : []),
    ...section('Commands', others),
    ...section('Arguments', args),
    ...section('Options', [...own, ...shared]),
    '',
    'Examples:',
    ...command.examples.flatMap(({ line, does }) => [`  # ${does}`, `  ${line.replaceAll('svc3', calledAs)}`]),
  ])
}

function optionRow([name, option]: readonly [string, Option]): Row {
  const short = option.short ? `-${option.short}, ` : '    '
  return [`${short}--${name}${valueText(option)}`, option.description + remark(option)]
}

const valueText = (option: Option): string => {
  if (option.type === 'boolean') return ''
  return ` ${option.type === 'choice' ? option.choices.join('|') : option.value}`
}

function remark(option: Option): string {
  if (option.type === 'boolean') return ''
  if (option.type === 'string' && option.required) return ' (required)'
  const shown = option.type === 'string' ? (option.defaultText ?? option.default) : option.default
  const repeat = option.type === 'string' && option.repeatable ? '; may be given several times' : ''
  return shown === undefined ? repeat : ` (default ${shown})${repeat}`
}
