// What a run of tests prints: a line per file, node's counts, and last what failed, each with the few lines that matter.
import path from 'node:path'
import type { run } from 'node:test'
import { inspect, stripVTControlCharacters } from 'node:util'

interface ReportOptions {
  readonly root: string
  /** In CI a test that is not run is a test that failed. */
  readonly failsOnSkips: boolean
}

/** Enough for a difference of two values; the whole is seen by running the file alone. */
const errorLines = 30
const outputLines = 20
const lineLength = 300

export async function report(events: ReturnType<typeof run>, { root, failsOnSkips }: ReportOptions): Promise<number> {
  const problems: string[] = []
  const failedFiles = new Set<string>()
  const outputs = new Map<string, string>()
  let isPassed = false
  const inRoot = (file = ''): string => path.relative(root, file)
  const say = (text: string): void => void process.stdout.write(`${text}\n`)

  for await (const { type, data } of events) {
    switch (type) {
      case 'test:stdout':
      case 'test:stderr':
        outputs.set(data.file ?? '', ((outputs.get(data.file ?? '') ?? '') + data.message).slice(-10_000))
        break
      case 'test:diagnostic':
        if (data.level !== 'info') say(`${inRoot(data.file)}: ${data.message}`)
        break
      case 'test:pass':
        if (failsOnSkips && (data.skip !== undefined || data.todo !== undefined))
          problems.push(`✖ skipped, which CI takes for a failure: ${data.name}\n  ${inRoot(data.file)}:${data.line}`)
        break
      case 'test:fail': {
        // A group fails with its tests, and tests with the hook of their group, which say more.
        const { cause, failureType } = data.details.error as Error & { failureType?: string }
        if (failureType === 'subtestsFailed' || failureType === 'cancelledByParent') break
        failedFiles.add(data.file ?? '')
        const what = `✖ ${data.name.replace(`${root}${path.sep}`, '')}\n  ${inRoot(data.file)}:${data.line}`
        say(what)
        problems.push(`${what}\n${textOf(cause ?? data.details.error, root)}`)
        break
      }
      case 'test:summary': {
        const { counts, duration_ms, file, success } = data
        if (file === undefined) {
          isPassed = success
          // As node's own reporters close: CI reads these.
          const { tests, suites, passed, failed, cancelled, skipped, todo } = counts
          const closing = { tests, suites, pass: passed, fail: failed, cancelled, skipped, todo, duration_ms }
          for (const [name, value] of Object.entries(closing)) say(`ℹ ${name} ${value}`)
        } else {
          if (!success) failedFiles.add(file)
          say(`${success ? '✔' : '✖'} ${inRoot(file)} (${counts.tests} tests, ${(duration_ms / 1_000).toFixed(1)} s)`)
        }
        break
      }
    }
  }
  for (const file of failedFiles) {
    const output = stripVTControlCharacters(outputs.get(file) ?? '').trim()
    if (output) say(`\nThe last of what ${inRoot(file)} wrote:\n${indented(output.split('\n').slice(-outputLines))}`)
  }
  if (problems.length > 0) say(`\n${problems.join('\n\n')}\n\n${problems.length} failed, see above.`)
  return isPassed && problems.length === 0 ? 0 : 1
}

/** The message, which has the difference of an assertion, and where in our files it was thrown. */
function textOf(error: unknown, root: string): string {
  if (!(error instanceof Error)) return indented(inspect(error).split('\n').slice(0, errorLines))
  const stack = error.stack ?? ''
  const frames = stack.split('\n').filter((line) => /^\s+at /.test(line) && line.includes(root))
  const own = frames.filter((line) => !line.includes('node_modules')).slice(0, 3)
  const cause = error.cause === undefined ? [] : [`caused by: ${inspect(error.cause).split('\n')[0]}`]
  const message = stripVTControlCharacters(`${error.name}: ${error.message}`).split('\n').slice(0, errorLines)
  return indented([...message, ...cause, ...own.map((line) => line.trim().replaceAll(`${root}${path.sep}`, ''))])
}

const indented = (lines: readonly string[]): string => lines.map((line) => `  ${line.slice(0, lineLength)}`).join('\n')
