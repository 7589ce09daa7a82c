// Reads the cluster to migrate from: by its documented lists, or from the `-o json` files of its documented backup, which are
// arrays, or objects with `items`.
import fs from 'node:fs'
import path from 'node:path'
import { listNamespaces } from '../../../api/access/namespaces.ts'
import type { listSubjects } from '../../../api/access/role-bindings.ts'
import { type JsonObject, parseJson } from '../../../api/json.ts'
import type { Client, ListOperation } from '../../../client/client.ts'
import { fieldsOf, textField } from '../../connect/connection.ts'
import type { Host } from '../../host.ts'
import { readInputFile } from '../../input.ts'
import { Failure } from '../../line/usage.ts'

export interface ListedKind {
  readonly list: typeof listSubjects | ListOperation
  readonly isClusterWide?: true
  /** Whether a record of a file is of this kind. */
  fits(record: JsonObject, file: string): boolean
}

export interface Source {
  /** Undefined for files. */
  readonly client?: Client
  /** `namespace` is spelled as the source spells it. */
  list(list: ListedKind['list'], namespace: string): Promise<readonly JsonObject[]>
}

/** Ends the run: no other request would get an answer. */
export class SourceRefusal extends Failure {}

export const liveSource = (client: Client, signal: AbortSignal): Source => ({
  client,
  // The original's name of the role has the prefix of its namespaces.
  async list(list, namespace) {
    const params = { namespace, role: namespace.replace(/-.*/, '-dev') }
    return (await client.listAll(list as ListOperation, { params, signal } as never)) as JsonObject[]
  },
})

export function filesSource(host: Host, folder: string, kinds: readonly ListedKind[]): Source {
  const files = fs.readdirSync(folder).filter((file) => file.endsWith('.json'))
  const entries = files.sort().flatMap((file) => {
    const place = path.join(folder, file)
    const value = parseJson(readInputFile(host, place, 'Check the file').toString())
    const records = Array.isArray(value) ? value : fieldsOf(value)?.items
    if (!Array.isArray(records)) throw new Failure(`${place} is not a list`, 'Move it elsewhere')
    return records.map((each: unknown) => {
      const record = fieldsOf(each) ?? {}
      const kind = kinds.find(({ fits }) => fits(record, file))
      if (kind) return { file, record, kind }
      throw new Failure(
        `Cannot tell what ${place} lists`,
        'Move it, or name it LIST-NAMESPACE.json, such as sa-web.json',
      )
    })
  })
  const spaces = entries.filter(({ kind }) => kind.list === listNamespaces).map(({ record }) => record)
  const known = [...spaces, ...(spaces.some(({ name }) => name === defaultSpace) ? [] : [{ name: defaultSpace }])]
  /** `rbac-prod-20261115.json` is about orka-prod, `vm-configs-backup-20261115.json` about no other namespace. */
  const spaceOf = ({ record, file }: (typeof entries)[number]): string => {
    const words = file.replace('.json', '').split('-')
    const [list, ...rest] = words.filter((word) => !/^\d+$/.test(word))
    const about = rest.slice(/^(vm|service)$/i.test(`${list}`) ? 1 : 0).join('-')
    const own = 'kind' in record ? undefined : textField(record.namespace)
    const found = own ?? known.map(({ name }) => String(name)).find((name) => name.replace(/^orka-/, '') === about)
    if (found !== undefined || ['', 'backup'].includes(about)) return found ?? defaultSpace
    const hint = 'Name it LIST-NAMESPACE.json, such as rbac-prod.json, and add the list of namespaces'
    throw new Failure(`Cannot tell the namespace of ${path.join(folder, file)}`, hint)
  }
  return {
    async list(list, namespace) {
      if (list === listNamespaces) return known
      const own = entries.filter(({ kind }) => kind.list === list)
      return own.filter((each) => each.kind.isClusterWide || spaceOf(each) === namespace).map(({ record }) => record)
    },
  }
}

const defaultSpace = 'orka-default'
