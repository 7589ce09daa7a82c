// What differs for ISOs; the rest is shared with images.
import * as api from '../../../api/images/isos.ts'
import type { ImageKind, Named } from '../image/kind.ts'

const paramsOf = ({ namespace, name }: Named) => ({ namespace, iso: name })

export const isoKind: ImageKind = {
  word: 'iso',
  noun: 'isos',
  list: api.listIsos,
  download: api.downloadIso,
  listAll: (client, namespace, signal) => client.listAll(api.listIsos, { params: { namespace }, signal }),
  get: (client, named) => client.call(api.getIso, { params: paramsOf(named), signal: named.signal }),
  copy: (client, named, body) => client.call(api.copyIso, { params: paramsOf(named), body, signal: named.signal }),
  describe: (client, named, description) =>
    client.call(api.describeIso, { params: paramsOf(named), body: { description }, signal: named.signal }),
}
