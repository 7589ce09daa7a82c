// svc3 migrate scan
import type { Finding, ScanOptions } from '../../../legacy/finding.ts'
import { kindOf, textFindings } from '../../../legacy/scan.ts'
import { logFindings } from '../../../legacy/scan-log.ts'
import { type Context, defineCommand, namespaced } from '../../command.ts'
import type { Column } from '../../output/output.ts'
import { type Advised, advised, replacementText, type Scanned } from './advised.ts'
import { filesUnder, type ScannedFile } from './files.ts'

interface Summary extends Advised {
  readonly calls: number
  readonly files: number
}

const columns: readonly Column<Scanned>[] = [
  { header: 'PLACE', cell: ({ file, line }) => `${file}:${line}` },
  { header: 'CALLS', cell: ({ count }) => count ?? 1 },
  { header: 'CALL', cell: ({ call }) => call },
  { header: 'REPLACEMENT', cell: replacementText },
  { header: 'COMMAND', cell: ({ commands }) => commands.join('; ') || undefined },
]

const summaryColumns: readonly Column<Summary>[] = [
  { header: 'CALLS', cell: ({ calls }) => calls },
  { header: 'FILES', cell: ({ files }) => files },
  { header: 'ENDPOINT', cell: ({ call }) => call },
  { header: 'REPLACEMENT', cell: replacementText },
]

/** What is larger and no program is read like a log. */
const largestTextBytes = 8 * 2 ** 20
const startBytes = 65_536
const formats = ['table', 'json', 'sarif'] as const

export const command = defineCommand({
  description:
    'Looks into programs, scripts, pipelines, Postman collections and access logs (also .gz).\n' +
    'Ends with 1 when it found any, so that a pipeline can fail on it. Asks no server.',
  arguments: {
    paths: { value: 'PATH', description: 'files and folders; - is standard input', required: true, repeatable: true },
  },
  options: {
    'base-url': {
      type: 'string',
      value: 'URL',
      description: 'Where 2.4.x answers: leaves out calls that go elsewhere',
    },
    summary: { type: 'boolean', description: 'Only the sums, one line for each endpoint' },
    output: { type: 'choice', short: 'o', choices: formats, default: 'table', description: 'Format of the answer' },
    format: { type: 'choice', choices: formats, description: 'The same as --output' },
    ...namespaced,
  },
  examples: [
    { line: 'svc3 migrate scan scripts/ .gitlab-ci.yml', does: 'Every call, and what replaces it' },
    { line: 'svc3 migrate scan /var/log/nginx --summary', does: 'How often which endpoint is called' },
    { line: 'svc3 migrate scan . -o sarif > legacy.sarif', does: 'For the code host of a project' },
  ],
  async run(context, { args: { paths }, options }) {
    const { 'base-url': baseUrl, namespace } = options
    const format = options.format ?? options.output
    const findings: Scanned[] = []
    for await (const file of filesOf(paths, context))
      for (const finding of await findingsIn(file, { baseUrl })) findings.push(scanned(file.name, finding, namespace))
    await report(context, findings, { format, isSummary: options.summary })
    return findings.length === 0 ? 0 : 1
  },
})

async function* filesOf(paths: readonly string[], { host, signal }: Context): AsyncGenerator<ScannedFile> {
  for (const path of paths)
    if (path === '-') yield { name: 'standard input', chunks: () => host.stdin.chunks(signal) }
    else yield* filesUnder([path], host.workingDir, signal)
}

/** A log is never held as a whole. */
async function findingsIn({ name, chunks }: ScannedFile, options: ScanOptions): Promise<Finding[]> {
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
      if (kind === 'log') return logFindings(more(), options)
    }
    if (bytes > largestTextBytes) return logFindings(more(), options)
  }
  const text = Buffer.concat(first).toString()
  const kind = kindOf(name, text.slice(0, startBytes))
  return kind === 'binary' || kind === 'log' ? [] : textFindings(kind, text, options)
}

const scanned = (file: string, finding: Finding, namespace: string | undefined): Scanned => {
  const { line, column, text, count } = finding
  return { file, line, column, text, ...(count !== undefined && { count }), ...advised(finding, namespace) }
}

function summaryOf(findings: readonly Scanned[]): Summary[] {
  return [...Map.groupBy(findings, ({ call }) => call).values()]
    .map((group) => {
      const [{ file: _, line: __, column: ___, text: ____, count: _____, ...first }] = group as [Scanned]
      const calls = group.reduce((sum, { count = 1 }) => sum + count, 0)
      return { ...first, calls, files: new Set(group.map(({ file }) => file)).size }
    })
    .toSorted((a, b) => b.calls - a.calls)
}

async function report(
  context: Context,
  findings: readonly Scanned[],
  { format, isSummary }: { readonly format: (typeof formats)[number]; readonly isSummary: boolean },
): Promise<void> {
  const write = (value: unknown): void => context.host.stdout.write(`${JSON.stringify(value, null, 2)}\n`)
  const summary = summaryOf(findings)
  if (format === 'sarif') return write((await import('./sarif.ts')).sarifOf(findings, context.host.version))
  if (format === 'json') return write(isSummary ? summary : findings)
  const none = 'No calls of the 2.4.x API found.'
  if (!isSummary) await context.print(findings, columns, none)
  if (findings.length === 0) return
  if (!isSummary) context.host.stdout.write('\n')
  await context.print(summary, summaryColumns, none)
  const gone = summary.filter(({ isReplaced }) => !isReplaced).length
  const rest =
    gone === 0 ? 'all of them have a replacement' : `${gone} of them ${gone === 1 ? 'has' : 'have'} no replacement`
  context.note(`${summary.length} endpoint${summary.length === 1 ? '' : 's'} of the 2.4.x API; ${rest}`)
}
