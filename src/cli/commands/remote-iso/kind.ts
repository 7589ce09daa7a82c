// What differs for remote ISOs.
import * as api from '../../../api/images/remote-isos.ts'
import { awaitChange } from '../../await-change.ts'
import { isoKind } from '../iso/kind.ts'
import type { Remote } from '../remote-image/kind.ts'

export const remoteIsos: Remote = {
  kind: isoKind,
  list: (client, namespace, signal) => client.call(api.listRemoteIsos, { params: { namespace }, signal }),
  pull: (context, client, { namespace, remote, sameTargetFlags }, body, timeoutMs) =>
    awaitChange(
      context,
      client,
      api.pullRemoteIso,
      { params: { namespace, remoteiso: remote }, body },
      { timeoutMs, what: 'the pull', next: `To follow it: svc3 iso list${sameTargetFlags}` },
    ),
}
