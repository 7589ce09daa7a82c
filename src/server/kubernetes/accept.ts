// The Accept header as clients of Kubernetes write it: what form an answer is to have. JSON in any case.

interface Accepted {
  readonly type: string
  readonly as: string
  readonly group: string
  readonly version: string
}

/** What is accepted, in the client's order. Longer headers than any client's are read up to a limit. */
export function parseAccept(header: string | undefined): readonly Accepted[] {
  return (header ?? '').slice(0, maxLength).split(',').slice(0, maxEntries).map(entryOf)
}

const maxLength = 4_096
const maxEntries = 32

function entryOf(text: string): Accepted {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim())
  const named = new Map(
    parameters.map((each) => {
      const at = each.indexOf('=')
      return at === -1 ? [each, ''] : [each.slice(0, at), each.slice(at + 1)]
    }),
  )
  const of = (name: string): string => named.get(name) ?? ''
  return { type, as: of('as'), group: of('g'), version: of('v') }
}

export interface Form {
  readonly as: 'object' | 'table' | 'metadata'
  /** Of the table, or of what is left of an object. */
  readonly version: string
}

const forms: Readonly<Record<string, Form['as']>> = {
  Table: 'table',
  PartialObjectMetadata: 'metadata',
  PartialObjectMetadataList: 'metadata',
}

/** The first form that there is. */
export function acceptedForm(header: string | undefined): Form {
  for (const { type, as, group, version } of parseAccept(header)) {
    if (type !== 'application/json' && type !== '*/*') continue
    if (as === '') break
    const form = Object.hasOwn(forms, as) ? forms[as] : undefined
    if (form && group === 'meta.k8s.io' && (version === 'v1' || version === 'v1beta1')) return { as: form, version }
  }
  return { as: 'object', version: 'v1' }
}
