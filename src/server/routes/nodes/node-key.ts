// Replaces a node's key, authenticated by its present one. Existing tokens stay valid: they are bound to the node and
// expire within the hour.
import { ApiError, invalid, invalidField } from '../../../api/errors.ts'
import type * as api from '../../../api/nodes/node-key.ts'
import { type NodeKeys, parseNodeKey } from '../../../auth/node-keys.ts'
import type { Collections } from '../../../store/records/collections.ts'
import { changeNode } from '../../../store/records/vms.ts'
import { Answer } from '../../http/answer.ts'
import type { HandlersOf } from '../../operations/handlers.ts'

const kind = 'nodes'

interface NodeKeyServices {
  readonly collections: Collections
  readonly nodeKeys: NodeKeys
}

export function nodeKey({ collections, nodeKeys }: NodeKeyServices): HandlersOf<typeof api> {
  return {
    async replaceNodeKey({ body: { name, at, publicKey, signature } }) {
      if (!parseNodeKey(publicKey))
        throw invalid(kind, [invalidField('publicKey', 'publicKey is not an Ed25519 key')], 'Send it as SPKI in base64')
      if (collections.nodes.get('', name)?.value.publicKey === publicKey) return new Answer(200, { name }, true)
      const changed = await changeNode(collections, name, (record) => {
        if (!nodeKeys.isSignedBy(record.publicKey, { name, at, signature, newKey: publicKey })) throw refused(name)
        return { ...record, publicKey }
      })
      if (!changed) throw refused(name)
      return { name, namespace: changed.value.namespace }
    },
  }
}

const refused = (name: string): ApiError =>
  new ApiError('Unauthorized', `Unauthorized: "${name.slice(0, 100)}" is not a node with that key`, {
    hint: 'If the node was removed, join again with a new token; otherwise check its clock',
  })
