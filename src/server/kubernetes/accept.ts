// The Accept header of Kubernetes clients: whether they want objects, a Table or metadata alone. All forms are JSON.

interface Accepted {
  readonly type: string
  readonly as: string
  readonly group: string
  readonly version: string
}

/** The accepted types in the client's order. Reads no further than the limits below. */
export function parseAccept(header: string | undefined): readonly Accepted[] {
  return (header ?? '').slice(0, maxLength).split(',').slice(0, maxEntries).map(entryOf)
}

const maxLength = 4_096
const maxEntries = 32

function entryOf(text: string): Accepted {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim())
  const values = new Map(
    parameters.map((each) => {
      const at = each.indexOf('=')
      return at === -1 ? [each, ''] : [each.slice(0, at), each.slice(at + 1)]
    }),
  )
  const parameter = (name: string): string => values.get(name) ?? ''
  return { type, as: parameter('as'), group: parameter('g'), version: parameter('v') }
}

export interface Form {
  readonly as: 'object' | 'table' | 'metadata'
  /** Of meta.k8s.io, for tables and metadata. */
  readonly version: string
}

const forms: Readonly<Record<string, Form['as']>> = {
  Table: 'table',
  PartialObjectMetadata: 'metadata',
  PartialObjectMetadataList: 'metadata',
}

/** The first accepted form that this server has. */
export function acceptedForm(header: string | undefined): Form {
  for (const { type, as, group, version } of parseAccept(header)) {
    if (type !== 'application/json' && type !== '*/*') continue
    if (as === '') break
    const form = Object.hasOwn(forms, as) ? forms[as] : undefined
    if (form && group === 'meta.k8s.io' && (version === 'v1' || version === 'v1beta1')) return { as: form, version }
  }
  return { as: 'object', version: 'v1' }
}
