// Replaces a node's key. The request is signed with the present key. Existing tokens stay valid until they expire
// within the hour, because they are bound to the node and not to its key.
import { invalid, invalidField } from '../../../api/errors.ts'
import type * as api from '../../../api/nodes/node-key.ts'
import { type NodeKeys, parseNodeKey } from '../../../auth/node-keys.ts'
import type { Collections } from '../../../store/records/collections.ts'
import { changeNode } from '../../../store/records/vms.ts'
import { Answer } from '../../http/answer.ts'
import { badSignature } from '../../nodes/join-once.ts'
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
        if (!nodeKeys.isSignedBy(record.publicKey, { name, at, signature, newKey: publicKey })) throw badSignature(name)
        return { ...record, publicKey }
      })
      if (!changed) throw badSignature(name)
      return { name, namespace: changed.value.namespace }
    },
  }
}
