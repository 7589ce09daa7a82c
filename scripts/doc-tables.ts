// Tables of pages that are otherwise written by hand: the settings of config.json and the metrics of a server, from the source.

import { settingsSchema } from '../src/server/config/settings.ts'
import { createMetrics } from '../src/server/http/metrics.ts'
import type { ObservedServer } from '../src/server/http/state-metrics.ts'

/** The part of a page between `<!-- NAME -->` and `<!-- end of NAME -->` becomes the table. */
export function withTable(page: string, name: string, table: string): string {
  const [before, after] = [`<!-- ${name} -->\n`, `<!-- end of ${name} -->`]
  const [start, end] = [page.indexOf(before), page.indexOf(after)]
  if (start === -1 || end === -1) throw new Error(`the page has no place for the ${name}`)
  return `${page.slice(0, start)}${before}\n${table}\n\n${page.slice(end)}`
}

const tableOf = (headers: readonly string[], rows: readonly (readonly string[])[]): string =>
  [headers, headers.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')

interface Schema {
  readonly type?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly default?: unknown
  readonly description?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly enum?: readonly unknown[]
}

export const settingsTable = (): string =>
  tableOf(['Setting', 'Default', 'Meaning'], settingRows(settingsSchema as Schema, ''))

function settingRows(schema: Schema, path: string): string[][] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, each]) => {
    const inside = path === '' ? name : `${path}.${name}`
    if (each.properties) return settingRows(each, inside)
    const shown = each.default === undefined ? '–' : `\`${JSON.stringify(each.default)}\``
    const items = each.items?.properties ? settingRows(each.items, `${inside}[]`) : []
    return [[`\`${inside}\``, shown, meaningOf(each)], ...items]
  })
}

function meaningOf({ description, minimum, maximum, enum: allowed }: Schema): string {
  const range =
    minimum === undefined || minimum <= 1
      ? maximum === undefined
        ? ''
        : ` (at most ${maximum.toLocaleString('en-US')})`
      : ` (${minimum.toLocaleString('en-US')}${maximum === undefined ? ' or more' : ` to ${maximum.toLocaleString('en-US')}`})`
  return `${description ?? ''}${range}${allowed ? `: ${allowed.map((value) => `\`${value}\``).join(', ')}` : ''}`
}

export function metricsTable(): string {
  const { registry, observe } = createMetrics('')
  // Nothing is scraped, so no metric reads the server.
  observe({} as ObservedServer)
  // prom-client keeps the labels of a metric, and has no type for them.
  const metrics = registry.getMetricsAsArray() as unknown as readonly {
    name: string
    help: string
    type: string
    labelNames: string[]
  }[]
  return tableOf(
    ['Metric', 'Type', 'Labels', 'Meaning'],
    metrics
      .filter(({ name }) => name.startsWith('svc3_'))
      .map(({ name, help, type, labelNames }) => [
        `\`${name}\``,
        type,
        labelNames.map((label) => `\`${label}\``).join(', ') || '–',
        help,
      ]),
  )
}
