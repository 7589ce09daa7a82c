// Generates docs/cli.md: every command with its options and examples.
import { everywhere, type Options } from '../command.ts'
import { optionRow } from '../line/help.ts'
import { environment, exits, type Fact, output, type Page, precedence } from './pages.ts'

export function referencePage(pages: readonly Page[]): string {
  const commands = pages.filter(({ command }) => command)
  const summaries = commands.map((page) => [link(page), inline(page.entry.summary)])
  const parts = [
    '# The command line',
    'Made from the table of commands by `npm run generate`; `svc3 COMMAND --help` and `man svc3` say the same. The program\nis also installed as `orka3`.',
    '## Answers',
    output.map((line) => `- ${inline(line)}`).join('\n'),
    '## Which service, which namespace',
    inline(precedence),
    '## Environment',
    table(['Variable', 'What it does'], environment.map(factRow)),
    '## Exit codes',
    table(['Code', 'Meaning'], exits.map(factRow)),
    '## Options of every command',
    'An option without a value may be written with one: `--quiet=true`, or `--quiet=false`, which is as if it were left out. `-o=json`\nis `-o json`.',
    optionTable(everywhere),
    '## Commands',
    table(['Command', 'What it does'], summaries),
    ...commands.flatMap(commandParts),
  ]
  return `${parts.join('\n\n')}\n`
}

const factRow = ({ name, text }: Fact): readonly string[] => [`\`${name}\``, inline(text)]

const link = ({ words }: Page): string => `[\`${words.join(' ')}\`](#svc3-${words.join('-')})`

function commandParts({ words, entry, command, usage }: Page): string[] {
  if (!command) return []
  const args = Object.values(command.arguments).map(({ value, description }) => [`\`${value}\``, inline(description)])
  const aliases = entry.aliases?.map((alias) => `\`${alias}\``).join(', ')
  const examples = command.examples.map(({ line, does }) => `# ${does}\n${line}`).join('\n')
  return [
    `### svc3 ${words.join(' ')}`,
    `${inline(entry.summary)}.${aliases ? ` Also called ${aliases}.` : ''}`,
    `\`\`\`\n${usage}\n\`\`\``,
    ...(command.description ? [inline(command.description.replaceAll('\n', ' '))] : []),
    ...(args.length > 0 ? [table(['Argument', ''], args)] : []),
    ...(Object.keys(command.options).length > 0 ? [optionTable(command.options)] : []),
    `\`\`\`sh\n${examples}\n\`\`\``,
  ]
}

const optionTable = (options: Options): string =>
  table(
    ['Option', ''],
    Object.entries(options).map((option) => {
      const [left, right] = optionRow(option)
      return [`\`${left.trim().replaceAll('|', '\\|')}\``, inline(right)]
    }),
  )

function table(headers: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`.replaceAll('|  |', '| |')
  return [line(headers), `|${'---|'.repeat(headers.length)}`, ...rows.map(line)].join('\n')
}

/** Nothing that Markdown would take for its own. */
const inline = (text: string): string => text.replaceAll(/[\\<>*_|`]/g, '\\$&')
