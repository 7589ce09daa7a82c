// Generates docs/man: svc3(1), and a page for each group of commands. Uses only macros of the classic man package, which
// both man-db and mandoc support.
import { everywhere, type Options } from '../../src/cli/command.ts'
import { optionRow, programSummary, tour } from '../../src/cli/line/help.ts'
import { environment, exits, type Fact, type ManualPage, output, precedence } from './pages.ts'

interface ManPage {
  readonly file: string
  readonly text: string
}

export function manPages(pages: readonly ManualPage[], version: string): ManPage[] {
  const tops = pages.filter(({ words }) => words.length === 1)
  return [
    { file: 'svc3.1', text: mainPage(tops, version) },
    ...tops.map((top) => {
      const own = pages.filter(({ words }) => words[0] === top.words[0])
      return { file: `svc3-${top.words[0]}.1`, text: topPage(top, own, version) }
    }),
  ]
}

const head = (name: string, version: string): string =>
  `.\\" Made by "npm run generate".\n.TH ${name.toUpperCase().replaceAll('-', '\\-')} 1 "" "svc3 ${version}" "svc3"`
const section = (title: string): string => `.SH ${title}`
const paragraph = (text: string): string => `.PP\n${plain(text)}`
const item = (left: string, right: string): string => `.TP\n.B ${plain(left)}\n${plain(right)}`
const facts = (all: readonly Fact[]): string[] => all.map(({ name, text }) => item(name, text))
const code = (lines: readonly string[]): string => ['.PP', '.nf', ...lines.map(plain), '.fi'].join('\n')

function mainPage(tops: readonly ManualPage[], version: string): string {
  return joined([
    head('svc3', version),
    section('NAME'),
    'svc3, orka3 \\- virtual machines on a cluster of Macs',
    section('SYNOPSIS'),
    plain('svc3 COMMAND [OPTIONS]'),
    section('DESCRIPTION'),
    plain(programSummary),
    ...output.map(paragraph),
    section('A VM FROM START TO END'),
    ...tour.map(({ line, does }) => item(line, does)),
    section('COMMANDS'),
    ...tops.map(({ words, entry }) =>
      item([...words, ...(entry.aliases ?? [])].join(', '), `${entry.summary}. See svc3-${words[0]}(1).`),
    ),
    section('OPTIONS'),
    ...optionItems(everywhere),
    section('WHICH SERVICE, WHICH NAMESPACE'),
    plain(precedence),
    section('ENVIRONMENT'),
    ...facts(environment),
    section('EXIT STATUS'),
    ...facts(exits),
    section('SEE ALSO'),
    plain(tops.map(({ words }) => `svc3-${words[0]}(1)`).join(', ')),
  ])
}

function topPage({ words: [word = ''], entry }: ManualPage, own: readonly ManualPage[], version: string): string {
  const runnable = own.filter(({ command }) => command)
  return joined([
    head(`svc3-${word}`, version),
    section('NAME'),
    `${plain(`svc3-${word}`)} \\- ${plain(entry.summary)}`,
    section('SYNOPSIS'),
    ...runnable.flatMap(({ usage }, index) => (index === 0 ? [plain(usage)] : ['.br', plain(usage)])),
    ...(entry.aliases ? [section('ALSO CALLED'), plain(entry.aliases.join(', '))] : []),
    ...runnable.flatMap(commandParts),
    section('SEE ALSO'),
    plain('svc3(1), for options of every command, the environment and exit codes'),
  ])
}

function commandParts({ words, entry, command, usage }: ManualPage): string[] {
  if (!command) return []
  return [
    section(`"${plain(words.join(' ').toUpperCase())}"`),
    plain(usage),
    paragraph(`${entry.summary}.${command.description ? ` ${command.description.replaceAll('\n', ' ')}` : ''}`),
    ...Object.values(command.arguments).map(({ value, description }) => item(value, description)),
    ...optionItems(command.options),
    paragraph('Examples:'),
    ...command.examples.map(({ line, does }) => code([`# ${does}`, line])),
  ]
}

const optionItems = (options: Options): string[] =>
  Object.entries(options).map((option) => {
    const [left, right] = optionRow(option)
    return item(left.trim(), right)
  })

const joined = (parts: readonly string[]): string => `${parts.join('\n')}\n`

/** Escapes a text so that troff takes nothing in it for a request, an escape or a typographic dash. */
const plain = (text: string): string =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('…', '\\&...')
    .replaceAll('’', "'")
    .replaceAll('"', '\\(dq')
    .replace(/^[.']/, '\\&$&')
