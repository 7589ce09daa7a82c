// The forms of an object in an answer: whole, as a row of a Table, or its metadata alone.
import type { ResponseForm } from './accept.ts'
import type { Kind, KubeObject, PrinterColumn } from './kinds/kind.ts'

const nameColumn: PrinterColumn = {
  name: 'Name',
  type: 'string',
  description: 'Name',
  cell: ({ metadata }) => metadata.name,
}

export const metaVersion = (version: string): string => `meta.k8s.io/${version}`

const partial = ({ metadata }: KubeObject, version: string) => ({
  kind: 'PartialObjectMetadata',
  apiVersion: metaVersion(version),
  metadata,
})

type IncludeObject = 'None' | 'Metadata' | 'Object'

export interface Renderer {
  readonly form: ResponseForm
  readonly kind: Kind
  readonly include: IncludeObject
  readonly now: () => Date
}

const wideNameColumn: PrinterColumn = { ...nameColumn, isWide: true }

const columnsOf = ({ columns, hasGeneratedNames }: Kind): readonly PrinterColumn[] =>
  hasGeneratedNames ? [...columns, wideNameColumn] : [nameColumn, ...columns]

export const columnDefinitions = (kind: Kind) =>
  columnsOf(kind).map(({ name, type, description, isWide }) => ({
    name,
    type,
    format: name === nameColumn.name ? 'name' : '',
    description,
    priority: isWide ? 1 : 0,
  }))

export function rowOf(object: KubeObject, { kind, include, form, now }: Renderer) {
  return {
    cells: columnsOf(kind).map(({ type, cell }) => cellOf(type, cell(object), now())),
    ...(include !== 'None' && { object: include === 'Object' ? object : partial(object, form.version) }),
  }
}

/** Shows missing values as Kubernetes does. */
function cellOf(type: PrinterColumn['type'], value: unknown, now: Date): unknown {
  if (type === 'date') return typeof value === 'string' ? ageText(now.getTime() - Date.parse(value)) : '<unknown>'
  return value === undefined || value === null ? (type === 'string' ? '' : null) : value
}

const [minute, hour, day, year] = [60, 3_600, 86_400, 31_536_000]

/** `45s`, `12m`, `3h5m`, `4d`, as kubectl shows ages. */
function ageText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000))
  const both = (unit: number, name: string, small: number, smallName: string): string => {
    const rest = Math.floor((seconds % unit) / small)
    return `${Math.floor(seconds / unit)}${name}${rest > 0 ? `${rest}${smallName}` : ''}`
  }
  if (seconds < 2 * minute) return `${seconds}s`
  if (seconds < 10 * minute) return both(minute, 'm', 1, 's')
  if (seconds < 3 * hour) return `${Math.floor(seconds / minute)}m`
  if (seconds < 8 * hour) return both(hour, 'h', minute, 'm')
  if (seconds < 2 * day) return `${Math.floor(seconds / hour)}h`
  if (seconds < 8 * day) return both(day, 'd', hour, 'h')
  return seconds < 2 * year ? `${Math.floor(seconds / day)}d` : both(year, 'y', day, 'd')
}

/** One object, or the object of a watch event, where only the first event has the columns of a table. */
export function rendered(object: KubeObject, renderer: Renderer, isFirst = true): unknown {
  const { form, kind } = renderer
  if (form.as === 'metadata') return partial(object, form.version)
  if (form.as === 'object') return object
  return {
    kind: 'Table',
    apiVersion: metaVersion(form.version),
    metadata: { resourceVersion: object.metadata.resourceVersion },
    columnDefinitions: isFirst ? columnDefinitions(kind) : [],
    rows: [rowOf(object, renderer)],
  }
}
