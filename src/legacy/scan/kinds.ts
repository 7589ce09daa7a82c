// Which kind of file it is, by its name and the beginning of its text.
import type { LanguageName } from './languages.ts'

export type Kind = 'binary' | 'log' | 'json' | 'yaml' | 'shell' | 'prose' | 'requests' | LanguageName

const byEnd: readonly (readonly [Kind, RegExp])[] = [
  ['log', /\.(?:log|ndjson|jsonl)(?:\.\d+)?$|(?:^|[/\\])(?:access|error)[._-]?log(?:\.\d+)?$/i],
  ['shell', /\.(?:sh|bash|zsh|ksh|bats|command|envrc|mk|dockerfile|env|properties|ini|conf|cfg|bat|cmd)$|(?:^|[/\\])(?:Makefile|Dockerfile|\.env)$/i],
  ['yaml', /\.ya?ml$/i],
  ['json', /\.(?:json|har|postman_collection|postman_environment)$/i],
  ['requests', /\.(?:http|rest)$/i],
  ['ruby', /\.(?:rb|rake|gemspec)$|(?:^|[/\\])(?:Rakefile|Fastfile|Gemfile|Vagrantfile)$/i],
  ['python', /\.pyi?$/i],
  ['java', /\.java$/i],
  ['kotlin', /\.kts?$/i],
  ['groovy', /\.(?:groovy|gradle|jenkinsfile)$|(?:^|[/\\])Jenkinsfile[\w.-]*$/i],
  ['csharp', /\.(?:cs|csx|vb|fs)$/i],
  ['go', /\.go$/i],
  ['script', /\.(?:[cm]?[jt]sx?|vue|svelte)$/i],
  ['swift', /\.swift$/i],
  ['php', /\.php$/i],
  ['c', /\.(?:c|cc|cpp|h|hpp|m|mm|rs|scala|dart)$/i],
  ['perl', /\.(?:pl|pm)$/i],
  ['powershell', /\.psm?1$/i],
  ['settings', /\.(?:tf|tfvars|hcl|toml|r)$/i],
] // biome-ignore format: a table

const shebangs: readonly (readonly [Kind, RegExp])[] = [
  ['shell', /^#!.{0,100}\b(?:ba|z|k|da)?sh\b/],
  ['python', /^#!.{0,100}\bpython/],
  ['ruby', /^#!.{0,100}\bruby/],
  ['perl', /^#!.{0,100}\bperl/],
  ['script', /^#!.{0,100}\bnode/],
  ['json', /^\s*\{\s*"/],
]

/** Of a block of code in a text. */
const fences: ReadonlyMap<string, Kind> = new Map([
  ...(['sh', 'bash', 'shell', 'zsh', 'console', 'shell-session', 'terminal', 'curl', 'dockerfile', 'makefile'] as const).map((name) => [name, 'shell'] as const),
  ...(['js', 'ts', 'javascript', 'typescript', 'jsx', 'tsx', 'node'] as const).map((name) => [name, 'script'] as const),
  ...(['python', 'ruby', 'java', 'kotlin', 'groovy', 'csharp', 'go', 'swift', 'php', 'perl', 'powershell', 'yaml'] as const).map((name) => [name, name] as const),
  ['py', 'python'], ['rb', 'ruby'], ['kt', 'kotlin'], ['cs', 'csharp'], ['golang', 'go'], ['yml', 'yaml'], ['hcl', 'settings'], ['terraform', 'settings'], ['http', 'requests'], ['', 'shell'],
]) // biome-ignore format: a table

export const kindOfFence = (language: string): Kind | undefined => fences.get(language)

const requestLine = /"(?:GET|POST|PUT|DELETE|HEAD|PATCH|OPTIONS) \S{1,2000} HTTP\/[\d.]{1,5}" \d{3}\b/
const jsonLine = /^\{.{0,2000}?"(?:method|request_method|verb|request)"\s{0,4}:\s{0,4}["{]/

/** `start`: the beginning of its text, enough for a few lines. */
export function kindOf(name: string, start: string): Kind {
  if (start.includes('\0')) return 'binary'
  const lines = start.split('\n', 20).filter((line) => line.trim() !== '')
  const known = byEnd.find(([, form]) => form.test(name))?.[0]
  const isProgram = known !== undefined && known !== 'log' && known !== 'json'
  if (!isProgram && lines.some((line) => requestLine.test(line))) return 'log'
  if (!isProgram && lines.length > 1 && lines.every((line) => line.startsWith('{'))) {
    if (lines.filter((line) => jsonLine.test(line)).length * 2 > lines.length) return 'log'
  }
  return known ?? shebangs.find(([, form]) => form.test(start))?.[0] ?? 'prose'
}
