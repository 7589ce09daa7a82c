// The report of an acceptance run, as JSON and Markdown. It is meant to be sent to others, so it names neither the host nor
// its user, and has no addresses besides loopback.
import os from 'node:os'
import path from 'node:path'
import type { HostCheck } from '../../api/nodes/node-report.ts'
import { writeFileAtomically } from '../../platform/files.ts'

export interface StepResult {
  readonly step: string
  readonly result: 'passed' | 'failed' | 'skipped'
  readonly seconds: number
  /** What was seen, or the reason. */
  readonly text: string
}

export interface Report {
  readonly svc3: string
  readonly host: string
  /** The driver with the version of tart; "unknown" until a node has joined. */
  readonly driver: string
  readonly image: string
  readonly at: string
  readonly checks: readonly HostCheck[]
  readonly steps: readonly StepResult[]
}

export const reportFiles = { json: 'acceptance.json', markdown: 'acceptance.md' } as const

/** The stand-in for tart says in its version that it is one. */
export const isStandIn = ({ driver }: Pick<Report, 'driver'>): boolean => !/tart \d[\d.]*\)?$/.test(driver)

export const countsOf = (steps: readonly StepResult[]): string =>
  ['passed', 'failed', 'skipped']
    .map((wanted) => `${steps.filter(({ result }) => result === wanted).length} ${wanted}`)
    .join(', ')

const wordOf = (name: string): RegExp => new RegExp(`(?<!\\w)${name.replaceAll(/\W/g, '\\$&')}(?!\\w)`, 'g')

/** Replaces names of this host, addresses, and whatever else identifies it. */
export function anonymous(text: string, names: Readonly<Record<string, string>> = {}): string {
  const [host, user] = [os.hostname(), os.userInfo().username]
  const all = { ...names, [os.homedir()]: '~', [host]: 'HOST', [host.replace(/\..*/, '')]: 'HOST', [user]: 'USER' }
  return (
    Object.entries(all)
      .filter(([name]) => name.length > 2 && !['localhost', 'root', 'admin', 'tart'].includes(name))
      .reduce((result, [name, word]) => result.replaceAll(wordOf(name), word), text)
      .replaceAll(/(?<![\d.])(?!127\.|0\.0\.0\.0)\d{1,3}(?:\.\d{1,3}){3}(?![\d.])/g, 'ADDRESS')
      // Of Ethernet and IPv6.
      .replaceAll(/(?<![\w:])(?!::1(?!\w))(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{1,4}(?![\w:])/gi, 'ADDRESS')
      .replaceAll(/vnc:\/\/\S+/g, 'vnc://…')
  )
}

function table(headers: string, rows: readonly (readonly unknown[])[]): string {
  const cell = (value: unknown): string => String(value).replaceAll('|', '\\|').replaceAll(/\s+/g, ' ').trim()
  const lines = rows.map((row) => `| ${row.map(cell).join(' | ')} |`)
  return [headers, headers.replaceAll(/[^|]+/g, '---'), ...lines].join('\n')
}

export function markdown(report: Report): string {
  const { svc3, host, driver, image, at, checks, steps } = report
  const what = `\`svc3 agent acceptance\` of svc3 ${svc3} with ${driver} and ${image}: ${countsOf(steps)}`
  const where = isStandIn(report) ? `${host}, on the stand-in` : host
  return [
    ...(isStandIn(report) ? ['> **This run used a stand-in for tart. It says nothing about a Mac.**'] : []),
    table('| What | Where | When |', [[what, where, at.slice(0, 10)]]),
    table(
      '| Step | Result | Seconds | Found |',
      steps.map(({ step, result, seconds, text }) => [step, result, seconds, text]),
    ),
    table(
      '| Check of the host | Result | Found | Advice |',
      checks.map(({ check, result, found, advice = '' }) => [check, result, found, advice]),
    ),
  ].join('\n\n')
}

export async function writeReport(folder: string, report: Report): Promise<void> {
  await writeFileAtomically(path.join(folder, reportFiles.json), `${JSON.stringify(report, null, 2)}\n`)
  await writeFileAtomically(path.join(folder, reportFiles.markdown), `${markdown(report)}\n`)
}
