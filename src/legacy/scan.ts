// Finds legacy calls in what people have: which kind of file it is, and what a finding is. Pure: whoever calls brings the
// text, or the bytes of a log as they come.
import type { Finding, ScanOptions } from './finding.ts'
import { postmanFindings } from './scan-postman.ts'
import { sourceFindings } from './scan-source.ts'

type Kind = 'binary' | 'log' | 'postman' | 'shell' | 'hash' | 'slash' | 'text'

/** By the end of the name: how comments look, which is all that the languages differ in here. */
const kinds: readonly (readonly [Kind, RegExp])[] = [
  ['log', /\.(?:log|ndjson|jsonl)(?:\.\d+)?$|(?:^|[/\\])(?:access|error)[._-]?log(?:\.\d+)?$/i],
  ['shell', /\.(?:sh|bash|zsh|ksh|bats|command|envrc|ya?ml|mk|dockerfile)$|(?:^|[/\\])(?:Makefile|Dockerfile)$/i],
  ['hash', /\.(?:py|rb|rake|ps1|psm1|toml|tf|pl|r|conf|cfg|ini|env|properties)$|(?:^|[/\\])(?:Rakefile|Fastfile|Gemfile)$/i],
  ['slash', /\.(?:[cm]?[jt]sx?|java|kts?|go|groovy|gradle|swift|cs|scala|php|rs|cpp|cc|c|h)$|(?:^|[/\\])Jenkinsfile$/i],
] // biome-ignore format: a table

const requestLine = /"(?:GET|POST|PUT|DELETE|HEAD|PATCH|OPTIONS) \S+ HTTP\/[\d.]+" \d{3}\b/
const jsonLine = /^\{.*"(?:method|request_method|verb|request)"\s*:\s*"/

/** `start`: the beginning of its text, enough for a few lines. */
export function kindOf(name: string, start: string): Kind {
  if (start.includes('\0')) return 'binary'
  const lines = start.split('\n', 20).filter((line) => line.trim() !== '')
  if (/\.postman_collection|"_postman_id"|getpostman\.com\/json\/collection/.test(name + start)) return 'postman'
  if (lines.some((line) => requestLine.test(line)) && !kinds[1]?.[1].test(name)) return 'log'
  if (lines.filter((line) => jsonLine.test(line)).length * 2 > lines.length && lines.length > 0) return 'log'
  const known = kinds.find(([, form]) => form.test(name))
  if (known) return known[0]
  return /^#!.*\b(?:ba|z|k|da)?sh\b/.test(start) ? 'shell' : /^#!.*\b(?:python|ruby|perl)/.test(start) ? 'hash' : 'text'
}

export const textFindings = (kind: Exclude<Kind, 'binary' | 'log'>, text: string, options: ScanOptions): Finding[] =>
  kind === 'postman' ? postmanFindings(text, options) : sourceFindings(kind, text, options)
