// How a node joins the cluster: with a join token, and with the public key that it will sign its requests with.
import { randomUUID } from 'node:crypto'
import { ApiError, type Cause, invalid, invalidIf } from '../../api/errors.ts'
import type { joinCluster as joinOperation } from '../../api/nodes/agent.ts'
import type { BodyOf, ResponseOf } from '../../api/operation.ts'
import { type NodeKeys, parseNodeKey } from '../../auth/node-keys.ts'
import { type Clock, timestamp } from '../../platform/clock.ts'
import { defined } from '../../platform/defined.ts'
import { isNodeName } from '../../rules/names.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { NodeRecord } from '../../store/records/fleet-records.ts'
import { isFault } from '../../store/store.ts'
import { checkNamespace, writeInside } from '../gate/namespace.ts'
import { Answer } from '../http/answer.ts'
import { badJoinToken, joinOnce } from './join-once.ts'

export interface JoinServices {
  readonly collections: Collections
  readonly nodeKeys: NodeKeys
  readonly clock: Clock
}

type Joined = ResponseOf<typeof joinOperation>

export async function joinCluster(
  services: JoinServices,
  { token, name, publicKey }: BodyOf<typeof joinOperation>,
  now: Date,
): Promise<Joined | Answer<Joined>> {
  const { collections, nodeKeys } = services
  const grant = await nodeKeys.openJoinToken(token)
  if (!grant) throw badJoinToken('is not valid')
  const { namespace } = grant
  const issuedFor = (space: ReturnType<typeof checkNamespace>): typeof space => {
    // The token was issued for an earlier namespace of the same name.
    if (grant.issuedAt.getTime() < Date.parse(space.value.createdAt)) throw badJoinToken('is not valid')
    return space
  }
  issuedFor(checkNamespace(services, namespace))
  const causes = nodeProblems(name, publicKey)
  if (causes.length > 0) throw invalid('nodes', causes, 'Use at most 63 lowercase letters, digits, dashes and periods')
  const known = (record: NodeRecord): Joined => ({
    name,
    namespace: record.namespace,
    uid: record.uid,
    ...defined({ joinToken: grant.id }),
  })
  const record: NodeRecord = {
    name,
    namespace,
    uid: randomUUID(),
    createdAt: timestamp(now),
    publicKey,
    tags: [],
    isCordoned: false,
    isReady: false,
  }
  const joined = await joinOnce(services, grant, { name, publicKey })
  try {
    const entry = await writeInside(services, namespace, (space) =>
      collections.nodes.create('', name, record, [issuedFor(space)]),
    )
    await joined()
    return known(entry.value)
  } catch (error) {
    const found = collections.nodes.get('', name)?.value
    if (!isFault(error, 'AlreadyExists') || !found) throw error
    if (found.publicKey !== publicKey) throw otherKey(found)
    await joined()
    return new Answer(200, known(found), true)
  }
}

const nodeProblems = (name: string, publicKey: string): Cause[] => [
  ...invalidIf(!isNodeName(name), 'name', `Invalid node name "${name.slice(0, 100)}"`),
  ...invalidIf(!parseNodeKey(publicKey), 'publicKey', 'publicKey is not an Ed25519 key'),
]

const otherKey = ({ name, namespace }: NodeRecord): ApiError =>
  new ApiError('AlreadyExists', `Node ${name} already exists with another key`, {
    kind: 'nodes',
    name,
    hint: `Use another name for this host, or remove the old node: svc3 node delete ${name} -n ${namespace}`,
  })
