// Nodes: the hosts of VMs. A node belongs to one namespace.
import * as t from 'typebox'
import { Status, success } from '../errors.ts'
import { base, inNamespace, listOperation, operationsOf } from '../operation.ts'
import { Architecture, ExpectedVersion, Flag, ResourceVersion, Timestamp } from '../records.ts'
import { chartsOf, MeasuredQuery } from '../service/charts.ts'
import { HostCheck } from './node-report.ts'

export const Node = t.Object(
  {
    name: t.String(),
    namespace: t.String(),
    uid: t.String(),
    nodeIP: t.String(),
    architecture: Architecture,
    availableCpu: t.Integer(),
    availableMemory: t.String({ description: 'Such as `11.20G`' }),
    availableGpu: t.Integer(),
    allocatableCpu: t.Integer(),
    allocatableMemory: t.String(),
    allocatableGpu: t.Integer(),
    nodeType: t.Literal('WORKER'),
    phase: t.Enum(['READY', 'NOT READY']),
    reason: t.Optional(t.String({ description: 'Why it runs no new VMs' })),
    cordoned: t.Boolean(),
    orkaTags: t.Array(t.String()),
    vms: t.Array(t.String(), { description: 'VMs on the node, as `namespace/name`' }),
    maxVms: t.Optional(t.Integer({ description: 'Maximum number of running VMs' })),
    maxMacosVms: t.Optional(t.Integer({ description: 'Maximum number of running macOS VMs' })),
    noMacos: t.Optional(t.String({ description: 'Why it runs no macOS VMs, and what to do' })),
    checks: t.Optional(t.Array(HostCheck, { description: 'What the agent found on its host, and what to do' })),
    images: t.Array(t.String(), { description: 'Images on the node' }),
    diskFreeGb: t.Optional(t.Integer({ description: 'Free disk space for VMs and images, in GiB' })),
    driver: t.String({ description: 'What runs the VMs, with its version: `qemu (QEMU 7.2.9 (kvm))`' }),
    version: t.String({ description: 'Version of the agent' }),
    os: t.String(),
    createdAt: Timestamp,
    lastSeenAt: t.Optional(Timestamp),
    resourceVersion: ResourceVersion,
  },
  { title: 'Node' },
)
export type Node = t.Static<typeof Node>

const noun = 'nodes'
const operation = operationsOf({ noun })
const change = operationsOf({ noun, allow: 'admin', method: 'POST', involves: 'params.name', response: Node })
const path = `${inNamespace}/nodes` as const
const params = { namespace: 'svc-default', name: 'mini-arm-13' }
const example = {
  name: 'mini-arm-13',
  namespace: 'svc-default',
  uid: '1c1d4a4e-7f2a-4a0f-8d63-0c3d0b7f9a10',
  nodeIP: '10.221.189.13',
  architecture: 'arm64',
  availableCpu: 5,
  availableMemory: '11.20G',
  availableGpu: 0,
  allocatableCpu: 8,
  allocatableMemory: '16.00G',
  allocatableGpu: 0,
  nodeType: 'WORKER',
  phase: 'READY',
  cordoned: false,
  orkaTags: ['ios'],
  vms: ['svc-default/vm-cznfv'],
  maxVms: 2,
  checks: [{ check: 'sleep', result: 'ok', found: 'never' }],
  images: ['sonoma'],
  driver: 'qemu (QEMU 7.2.9 (kvm))',
  version: '3.0.0',
  os: 'Linux 6.1',
  createdAt: '2026-11-15T09:00:00Z',
  resourceVersion: '21',
}

export const listNodes = listOperation({
  id: 'listNodes',
  noun,
  path,
  allow: 'dev',
  summary: 'List the nodes of a namespace',
  item: Node,
  example: { params: { namespace: 'svc-default' }, item: example },
})

const Expected = t.Object({ resourceVersion: ExpectedVersion }, { title: 'NodeExpected' })
const Tag = t.Object({ tag: t.String({ maxLength: 256 }), resourceVersion: ExpectedVersion }, { title: 'NodeTag' })

export const tagNode = change({
  id: 'tagNode',
  path: `${path}/{name}/tag`,
  summary: 'Give a node a tag',
  past: 'tagged node {name} with {tag}',
  body: Tag,
  refuses: ['Invalid', 'Conflict'],
  example: { params, body: { tag: 'ios' }, response: example },
})

export const untagNode = change({
  id: 'untagNode',
  path: `${path}/{name}/untag`,
  summary: 'Remove a tag from a node',
  past: 'removed tag {tag} from node {name}',
  body: Tag,
  refuses: ['Conflict'],
  example: { params, body: { tag: 'ios' }, response: { ...example, orkaTags: [] } },
})

export const moveNode = change({
  id: 'moveNode',
  path: `${path}/{name}/namespace`,
  summary: 'Move a node to another namespace',
  past: 'moved node {name} to {namespace}',
  body: t.Object({ namespace: t.String({ maxLength: 256 }), resourceVersion: ExpectedVersion }, { title: 'NodeMove' }),
  refuses: ['Conflict'],
  example: { params, body: { namespace: 'svc-ios' }, response: { ...example, namespace: 'svc-ios', vms: [] } },
})

export const cordonNode = change({
  id: 'cordonNode',
  path: `${path}/{name}/cordon`,
  summary: 'Cordon a node: no new VMs',
  past: 'cordoned node {name}',
  body: Expected,
  bodyIsOptional: true,
  refuses: ['Conflict'],
  example: { params, body: {}, response: { ...example, cordoned: true } },
})

export const uncordonNode = change({
  id: 'uncordonNode',
  path: `${path}/{name}/uncordon`,
  summary: 'Uncordon a node: allow new VMs',
  past: 'uncordoned node {name}',
  body: Expected,
  bodyIsOptional: true,
  refuses: ['Conflict'],
  example: { params, body: {}, response: example },
})

export const drainNode = change({
  id: 'drainNode',
  path: `${path}/{name}/drain`,
  summary: 'Drain a node: no new VMs, and list or delete those on it',
  description:
    'VMs live on the disk of their node and cannot move. Without `deleteVms` they keep running, and ' +
    '`vms` in the answer lists them; with it they are deleted.',
  past: 'drained node {name}',
  tells: ['deleteVms'],
  body: t.Object({ deleteVms: Flag('Delete the VMs on it'), resourceVersion: ExpectedVersion }, { title: 'NodeDrain' }),
  bodyIsOptional: true,
  refuses: ['Conflict'],
  example: { params, body: { deleteVms: true }, response: { ...example, cordoned: true } },
})

export const deleteNode = operation({
  id: 'deleteNode',
  method: 'DELETE',
  path: `${path}/{name}`,
  allow: 'admin',
  summary: 'Remove a node from the cluster',
  description: 'Its agent can no longer connect. Refused while it has VMs.',
  involves: 'params.name',
  past: 'removed node {name}',
  response: Status,
  refuses: ['Conflict'],
  example: {
    params,
    response: success('node "mini-arm-13" removed', { kind: 'nodes', name: 'mini-arm-13' }),
  },
})

const expectedFields = ['name', 'namespace', 'orkaTags', 'createdAt', 'resourceVersion'] as const
const ExpectedNode = t.Pick(Node, [...expectedFields], { title: 'ExpectedNode' })
export type ExpectedNode = t.Static<typeof ExpectedNode>

export const listExpectedNodes = listOperation({
  id: 'listExpectedNodes',
  noun,
  path: `${inNamespace}/expectednodes`,
  allow: 'admin',
  summary: 'List the hosts that are expected to join, and the tags that they get',
  item: ExpectedNode,
  refuses: ['NotFound'],
  example: {
    params: { namespace: 'svc-default' },
    item: Object.fromEntries(expectedFields.map((field) => [field, example[field]])),
  },
})

export const createJoinToken = operation({
  id: 'createJoinToken',
  method: 'POST',
  path: `${base}/namespaces/{namespace}/jointokens`,
  allow: 'admin',
  // A host reads the credentials with which it pushes and pulls.
  accounts: 'registrycredentials',
  status: 201,
  summary: 'Create a join token for new nodes',
  involves: 'params.namespace',
  involvesKind: 'namespaces',
  past: 'created join token {id} for {name}',
  tells: ['duration', 'node', 'tags'],
  description:
    'Nodes join the namespace of the path. With `node`, the host of that name is expected there: it gets the tags with any ' +
    'token of the namespace, and cannot join another one.',
  body: t.Object(
    {
      duration: t.Optional(t.String({ minLength: 1, maxLength: 64, description: 'Default: one hour' })),
      reusable: Flag('Allow several hosts until it expires; otherwise one'),
      node: t.Optional(t.String({ minLength: 1, maxLength: 256, description: 'Name of the expected host' })),
      tags: t.Optional(t.Array(t.String({ maxLength: 256 }), { maxItems: 32, description: 'Tags of the new nodes' })),
    },
    { title: 'JoinTokenRequest' },
  ),
  bodyIsOptional: true,
  secretAnswer: true,
  response: t.Object(
    {
      id: t.Optional(t.String({ description: 'ID of the token in events; not secret' })),
      token: t.String({ description: 'The secret alone' }),
      expiresAt: Timestamp,
      join: t.Optional(
        t.String({
          description: 'One string for `svc3 agent --join`: addresses, the public key of the servers, and the token',
        }),
      ),
    },
    { title: 'JoinToken' },
  ),
  refuses: ['Invalid', 'AlreadyExists'],
  example: {
    params: { namespace: 'svc-default' },
    body: { duration: '1h' },
    response: { id: '8d0f1c2e', token: 'eyJhbGciOiJFZERTQSJ9.e30.c2ln', expiresAt: '2026-11-15T10:00:00Z' },
  },
})

const nodeCharts = ['cpu', 'memory', 'disk', 'cacheHits'] as const

export const getNodeCharts = operation({
  id: 'getNodeCharts',
  method: 'GET',
  path: `${path}/{name}/charts`,
  allow: 'dev',
  summary: 'Show what a node uses: CPU, memory, disk, image cache',
  description:
    'Of the host, everything on it included, for a day. `cacheHits`: how many of the images that VMs started from were ' +
    'on the node already, in percent. Empty for simulated nodes.',
  isDerived: true,
  query: MeasuredQuery,
  response: chartsOf('NodeCharts', nodeCharts),
  refuses: ['Conflict', 'ServiceUnavailable'],
  example: {
    params,
    response: {
      stepSeconds: 10,
      series: [{ name: 'cpu', unit: '%', start: 1_763_200_800, values: [12.5, 99, null] }],
    },
  },
})
