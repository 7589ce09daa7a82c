// What is different about remote ISOs.
import * as api from '../../../api/remote-isos.ts'
import { isoKind } from '../isos/kind.ts'
import type { Remote } from '../remote-images/kind.ts'

export const remoteIsos: Remote = {
  kind: isoKind,
  list: (client, namespace, signal) => client.call(api.listRemoteIsos, { params: { namespace }, signal }),
  pull: (client, { namespace, remote, signal }, body) =>
    client.call(api.pullRemoteIso, { params: { namespace, remoteiso: remote }, body, signal }),
}
