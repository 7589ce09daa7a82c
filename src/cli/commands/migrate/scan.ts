// svc3 migrate scan

import type { Finding, ScanOptions } from '../../../legacy/scan/finding.ts'
import { kindOf } from '../../../legacy/scan/kinds.ts'
import { logFindings } from '../../../legacy/scan/log.ts'
import { scanText } from '../../../legacy/scan/scan.ts'
import { counted } from '../../../rules/sizes.ts'
import { type Context, defineCommand, namespaced } from '../../command.ts'
import { jsonText, type OutputColumn, visible } from '../../output/output.ts'
import { type Advised, advised, replacementText, type Scanned } from './advised.ts'
import { filesUnder, type ScannedFile } from './files.ts'
import { sarifOf } from './sarif.ts'

interface Summary extends Advised {
  readonly calls: number
  readonly files: number
}

const columns: readonly OutputColumn<Scanned>[] = [
  { header: 'PLACE', cell: ({ file, line }) => `${file}:${line}` },
  { header: 'CALLS', cell: ({ count }) => count ?? 1 },
  { header: 'CALL', cell: ({ call, confidence }) => (confidence === 'certain' ? call : `${call} (${confidence})`) },
  { header: 'REPLACEMENT', cell: replacementText },
  { header: 'COMMAND', cell: ({ commands }) => commands.join('; ') || undefined },
]

const summaryColumns: readonly OutputColumn<Summary>[] = [
  { header: 'CALLS', cell: ({ calls }) => calls },
  { header: 'FILES', cell: ({ files }) => files },
  { header: 'ENDPOINT', cell: ({ call }) => call },
  { header: 'REPLACEMENT', cell: replacementText },
]

/** Larger files are read as logs, so that memory stays bounded. */
const maxTextBytes = 4 * 2 ** 20
const startBytes = 65_536
const formats = ['table', 'json', 'sarif'] as const

export const command = defineCommand({
  description:
    'Reads programs, scripts, pipelines, Postman collections, OpenAPI documents and access logs (also .gz).\n' +
    'Exits with 1 if it finds any call or cannot read a file, so that a pipeline can fail. Does not contact a server.\n' +
    'A finding is certain, likely or possible; --strict leaves out all but the certain ones.\n' +
    'Paths that a program puts together across lines or files are not found: run svc3 migrate usage to see who still calls.',
  arguments: {
    paths: {
      value: 'PATH',
      description: 'files and folders; - reads standard input',
      required: true,
      repeatable: true,
    },
  },
  options: {
    'base-url': { type: 'string', value: 'URL', description: 'Address of the 2.4.x service; skips calls to others' },
    summary: { type: 'boolean', description: 'Print only totals, one line per endpoint' },
    strict: { type: 'boolean', description: 'Leave out findings that are not certain' },
    output: { type: 'choice', short: 'o', choices: formats, default: 'table', description: 'Format of the answer' },
    format: { type: 'choice', choices: formats, description: 'Same as --output' },
    ...namespaced,
  },
  examples: [
    { line: 'svc3 migrate scan scripts/ .gitlab-ci.yml', does: 'List all calls and their replacements' },
    { line: 'svc3 migrate scan /var/log/nginx --summary', does: 'Count the calls per endpoint' },
    { line: 'svc3 migrate scan . --strict -o sarif > legacy.sarif', does: 'Certain calls, for a code host' },
  ],
  async run(context, { args: { paths }, options }) {
    const { 'base-url': baseUrl, namespace } = options
    const format = options.format ?? options.output
    const skipped: string[] = []
    const all = await findingsIn(filesOf(paths, context), { baseUrl }, (file, error) => {
      context.signal.throwIfAborted()
      // Notes can be hidden, but an incomplete result must always be reported.
      const reason = error instanceof Error ? error.message : String(error)
      context.host.stderr.write(`${context.host.calledAs}: ${visible(`Skipped ${file}: ${reason}`)}\n`)
      skipped.push(file)
    })
    const shown = options.strict ? all.filter(({ confidence }) => confidence === 'certain') : all
    const findings = shown.map((finding) => scanned(finding, namespace))
    await report(context, findings, { format, isSummary: options.summary })
    return findings.length + skipped.length === 0 ? 0 : 1
  },
})

async function* filesOf(paths: readonly string[], { host, signal }: Context): AsyncGenerator<ScannedFile> {
  for (const path of paths)
    if (path === '-') yield { name: 'standard input', chunks: () => host.stdin.chunks(signal) }
    else yield* filesUnder([path], host.workingDir, signal)
}

/** Skips files that cannot be read. */
async function findingsIn(
  files: AsyncIterable<ScannedFile>,
  options: ScanOptions,
  onSkipped: (file: string, error: unknown) => void,
): Promise<Finding[]> {
  const found: Finding[] = []
  for await (const file of files)
    try {
      for (const each of await findingsOf(file, options)) found.push(each)
    } catch (error) {
      onSkipped(file.name, error)
    }
  return found
}

/** Reads logs as streams, because they may be larger than memory. */
async function findingsOf({ name, chunks }: ScannedFile, options: ScanOptions): Promise<Finding[]> {
  const first: Uint8Array[] = []
  let bytes = 0
  const rest = chunks()[Symbol.asyncIterator]()
  const more = async function* (): AsyncGenerator<Uint8Array> {
    yield* first
    for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value
  }
  for (let next = await rest.next(); !next.done; next = await rest.next()) {
    first.push(next.value)
    bytes += next.value.length
    if (bytes === next.value.length) {
      const kind = kindOf(name, Buffer.from(next.value.subarray(0, startBytes)).toString())
      if (kind === 'binary') {
        await rest.return?.()
        return []
      }
      if (kind === 'log') return logFindings(name, more(), options)
    }
    if (bytes > maxTextBytes) return logFindings(name, more(), options)
  }
  return scanText(name, Buffer.concat(first).toString(), options)
}

const scanned = (finding: Finding, namespace: string | undefined): Scanned => {
  const { file, line, column, text, confidence, count } = finding
  return { file, line, column, text, confidence, ...(count !== undefined && { count }), ...advised(finding, namespace) }
}

function summaryOf(findings: readonly Scanned[]): Summary[] {
  return [...Map.groupBy(findings, ({ call }) => call).values()]
    .map((group) => {
      const { call, isReplaced, requests, commands, reason, documentation } = group[0] as Scanned
      const first = { call, isReplaced, requests, commands, ...(reason !== undefined && { reason }), documentation }
      const calls = group.reduce((sum, { count = 1 }) => sum + count, 0)
      return { ...first, calls, files: new Set(group.map(({ file }) => file)).size }
    })
    .toSorted((a, b) => b.calls - a.calls)
}

const unseen = 'Paths put together across lines or files are not found; run svc3 migrate usage to see who still calls'

async function report(
  context: Context,
  findings: readonly Scanned[],
  { format, isSummary }: { readonly format: (typeof formats)[number]; readonly isSummary: boolean },
): Promise<void> {
  const write = (value: unknown): void => context.host.stdout.write(`${jsonText(value, 2)}\n`)
  const summary = summaryOf(findings)
  if (format === 'sarif') return write(sarifOf(findings, context.host.version))
  if (format === 'json') return write(isSummary ? summary : findings)
  const none = 'No calls of the 2.4.x API found.'
  if (!isSummary) await context.print(findings, columns, none)
  if (findings.length === 0) return context.note(unseen)
  if (!isSummary) context.host.stdout.write('\n')
  await context.print(summary, summaryColumns, none)
  const unreplaced = summary.filter(({ isReplaced }) => !isReplaced).length
  const rest =
    unreplaced === 0 ? 'all have a replacement' : `${unreplaced} ${unreplaced === 1 ? 'has' : 'have'} no replacement`
  const unsure = findings.filter(({ confidence }) => confidence !== 'certain').length
  const [are, them] = unsure === 1 ? ['is', 'it'] : ['are', 'them']
  if (unsure > 0)
    context.note(`${unsure} of ${findings.length} findings ${are} not certain; --strict leaves ${them} out`)
  context.note(`${counted(summary.length, 'endpoint')} of the 2.4.x API; ${rest}`)
  context.note(unseen)
}
