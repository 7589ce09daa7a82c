// Generates docs/reference/cli: an index, and a page for each group of commands with options and examples.
import { everywhere, type Options } from '../../src/cli/command.ts'
import { optionRow } from '../../src/cli/line/help.ts'
import { environment, exits, type Fact, type ManualPage, output, precedence } from './pages.ts'

interface ReferencePage {
  readonly file: string
  readonly text: string
}

/** File names are relative to docs/reference/cli. */
export function referencePages(pages: readonly ManualPage[]): ReferencePage[] {
  const tops = pages.filter(({ words }) => words.length === 1)
  return [
    { file: 'README.md', text: indexPage(pages) },
    ...tops.map((top) => ({
      file: `${top.words[0]}.md`,
      text: groupPage(
        top,
        pages.filter(({ words }) => words[0] === top.words[0]),
      ),
    })),
  ]
}

function indexPage(pages: readonly ManualPage[]): string {
  const summaries = runnable(pages).map((page) => [link(page, `${page.words[0]}.md`), inline(page.entry.summary)])
  return joined([
    '# Command line reference',
    `${generated} \`svc3 COMMAND --help\` and \`man svc3\` say the same. The program is also installed as \`orka3\`.`,
    '## Commands',
    table(['Command', 'What it does'], summaries),
    '## Output',
    output.map((line) => `- ${inline(line)}`).join('\n'),
    '## Which service, which namespace',
    inline(precedence),
    '## Environment',
    table(['Variable', 'What it does'], environment.map(factRow)),
    '## Exit codes',
    table(['Code', 'Meaning'], exits.map(factRow)),
    '## Options of every command',
    optionTable(everywhere),
    'A flag may be written with a value: `--quiet=true`, or `--quiet=false`, which is the same as without it. `-o=json` is `-o json`.',
  ])
}

function groupPage({ words: [word = ''], entry }: ManualPage, own: readonly ManualPage[]): string {
  const commands = runnable(own)
  const aliases = entry.aliases?.map((alias) => `\`svc3 ${alias}\``).join(', ')
  const isGroup = commands.length > 1 || commands[0]?.words.length !== 1
  return joined([
    `# svc3 ${word}`,
    `${inline(entry.summary)}.${aliases ? ` Also called ${aliases}.` : ''} ${generated} Options of every command are in the [index](README.md#options-of-every-command).`,
    ...(isGroup
      ? [
          table(
            ['Command', 'What it does'],
            commands.map((page) => [link(page, ''), inline(page.entry.summary)]),
          ),
        ]
      : []),
    ...commands.flatMap((page) => commandParts(page, isGroup)),
  ])
}

const generated = 'Generated from the table of commands by `npm run generate`.'
const runnable = (pages: readonly ManualPage[]): ManualPage[] => pages.filter(({ command }) => command)
const joined = (parts: readonly string[]): string => `${parts.join('\n\n')}\n`
const factRow = ({ name, text }: Fact): readonly string[] => [`\`${name}\``, inline(text)]

const link = ({ words }: ManualPage, file: string): string =>
  `[\`${words.join(' ')}\`](${file}#svc3-${words.join('-')})`

function commandParts({ words, entry, command, usage }: ManualPage, isGroup: boolean): string[] {
  if (!command) return []
  const args = Object.values(command.arguments).map(({ value, description }) => [`\`${value}\``, inline(description)])
  const aliases = words.length > 1 ? entry.aliases?.map((alias) => `\`${alias}\``).join(', ') : undefined
  const examples = command.examples.map(({ line, does }) => `# ${does}\n${line}`).join('\n')
  return [
    ...(isGroup
      ? [`## svc3 ${words.join(' ')}`, `${inline(entry.summary)}.${aliases ? ` Also called ${aliases}.` : ''}`]
      : []),
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

/** Escapes Markdown. */
const inline = (text: string): string => text.replaceAll(/[\\<>*_|`]/g, '\\$&')
