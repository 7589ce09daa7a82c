// The Accept header of Kubernetes clients: whether they want objects, a Table or metadata alone. All forms are JSON.

import { MIMEType } from 'node:util'

interface AcceptedType {
  readonly type: string
  readonly as: string | null
  readonly group: string | null
  readonly version: string | null
}

const maxLength = 4_096
const maxEntries = 32

/** The accepted types in the client's order. Reads no further than the limits. */
export const parseAccept = (header = ''): readonly AcceptedType[] =>
  header.slice(0, maxLength).split(',').slice(0, maxEntries).flatMap(parsedType)

function parsedType(text: string): readonly AcceptedType[] {
  try {
    const { essence, params } = new MIMEType(text)
    return [{ type: essence, as: params.get('as'), group: params.get('g'), version: params.get('v') }]
  } catch {
    return []
  }
}

export interface ResponseForm {
  readonly as: 'object' | 'table' | 'metadata'
  /** Of meta.k8s.io, for tables and metadata. */
  readonly version: string
}

const forms: Readonly<Record<string, ResponseForm['as']>> = {
  Table: 'table',
  PartialObjectMetadata: 'metadata',
  PartialObjectMetadataList: 'metadata',
}

/** The first accepted form that this server has. */
export function acceptedForm(header: string | undefined): ResponseForm {
  for (const { type, as, group, version } of parseAccept(header)) {
    if (type !== 'application/json' && type !== '*/*') continue
    if (as === null) break
    const form = Object.hasOwn(forms, as) ? forms[as] : undefined
    if (form && group === 'meta.k8s.io' && (version === 'v1' || version === 'v1beta1')) return { as: form, version }
  }
  return { as: 'object', version: 'v1' }
}
