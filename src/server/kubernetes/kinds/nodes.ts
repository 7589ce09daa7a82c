// OrkaNode: a node, in the namespace that it belongs to.
import * as t from 'typebox'
import { deleteNode, listNodes, moveNode, type Node, tagNode, untagNode } from '../../../api/nodes/nodes.ts'
import { fieldsOf, type Kind, type ObjectFields } from './kind.ts'
import { archLabel, label, orka, svc3Name } from './orka.ts'
import { column } from './vm-fields.ts'

export const orkaNodeKind: Kind = {
  ...orka,
  kind: 'OrkaNode',
  plural: 'orkanodes',
  singular: 'orkanode',
  description: 'A node, in the namespace that it belongs to',
  scope: 'namespace',
  keptAs: 'nodes',
  computedLabels: [archLabel],
  list: listNodes,
  show: (node: Node) => ({
    name: node.name,
    namespace: node.namespace,
    uid: node.uid,
    createdAt: node.createdAt,
    labels: { [archLabel]: node.architecture },
    annotations: {
      [svc3Name('reason')]: node.reason,
      [svc3Name('cordoned')]: String(node.cordoned),
      [svc3Name('vms')]: node.vms.length === 0 ? undefined : node.vms.join(','),
    },
    body: {
      spec: { tags: node.orkaTags, namespace: node.namespace },
      status: {
        nodeIP: node.nodeIP,
        availableCpu: node.availableCpu,
        availableMemory: node.availableMemory,
        availableGpu: node.availableGpu,
        allocatableCpu: node.allocatableCpu,
        allocatableMemory: node.allocatableMemory,
        allocatableGpu: node.allocatableGpu,
        nodeType: node.nodeType,
        phase: node.phase,
        kubeletVersion: node.version,
        containerRuntimeVersion: node.driver,
        osVersion: node.os,
        images: node.images.map((name) => ({ names: [name], status: 'Ready', errorMessage: '' })),
      },
    },
  }),
  schema: {
    spec: t.Object({
      tags: t.Array(t.String({ maxLength: 256 }), {
        description: 'Tags, by which VMs choose nodes',
        'x-kubernetes-list-type': 'set',
      }),
      namespace: t.String({ maxLength: 256, description: 'Namespace that it belongs to' }),
    }),
    status: t.Object({
      nodeIP: t.String(),
      availableCpu: t.Integer(),
      availableMemory: t.String({ description: 'Such as 11.20G' }),
      availableGpu: t.Integer(),
      allocatableCpu: t.Integer(),
      allocatableMemory: t.String(),
      allocatableGpu: t.Integer(),
      nodeType: t.String({ description: 'WORKER' }),
      phase: t.String({ description: 'READY or NOT READY' }),
      kubeletVersion: t.String({ description: 'Version of the agent' }),
      containerRuntimeVersion: t.String({ description: 'What runs the VMs' }),
      osVersion: t.String(),
      images: t.Array(
        t.Object({
          names: t.Array(t.String()),
          size: t.Optional(t.Integer()),
          spaceUsed: t.Optional(t.Integer()),
          status: t.String(),
          errorMessage: t.String(),
        }),
      ),
    }),
  },
  hasStatus: true,
  columns: [
    column(['Available-CPU', 'integer', 'status.availableCpu']),
    column(['Available-Memory', 'string', 'status.availableMemory']),
    column(['Available-GPU', 'integer', 'status.availableGpu', true]),
    column(['Status', 'string', 'status.phase']),
    column(['IP', 'string', 'status.nodeIP', true]),
    column(['Allocatable-CPU', 'integer', 'status.allocatableCpu', true]),
    column(['Allocatable-Memory', 'string', 'status.allocatableMemory', true]),
    column(['Allocatable-GPU', 'integer', 'status.allocatableGpu', true]),
    column(['Version', 'string', 'status.kubeletVersion', true]),
    column(['Runtime', 'string', 'status.containerRuntimeVersion', true]),
    column(['OS', 'string', 'status.osVersion', true]),
    {
      name: 'Architecture',
      type: 'string',
      description: 'arm64 or amd64',
      isWide: true,
      cell: (object) => label(object, archLabel),
    },
    {
      name: 'Tags',
      type: 'string',
      description: 'Tags',
      isWide: true,
      cell: ({ spec }) => (spec as { tags: readonly string[] }).tags.join(','),
    },
  ],
  update: {
    operations: [tagNode, untagNode, moveNode],
    plan: (before, after) => {
      const { name } = before.metadata
      const [was, is] = [before, after].map((object) => fieldsOf(object.spec)) as [ObjectFields, ObjectFields]
      const tags = (spec: ObjectFields): readonly string[] => (Array.isArray(spec.tags) ? (spec.tags as string[]) : [])
      const tag = (operation: typeof tagNode | typeof untagNode, from: ObjectFields, of: ObjectFields) =>
        tags(from)
          .filter((each) => !tags(of).includes(each))
          .map((each) => ({ operation, params: { name }, body: { tag: each } }))
      const isMoved = typeof is.namespace === 'string' && is.namespace !== was.namespace
      return [
        ...tag(tagNode, is, was),
        ...tag(untagNode, was, is),
        ...(isMoved ? [{ operation: moveNode, params: { name }, body: { namespace: is.namespace } }] : []),
      ]
    },
    isAllowed: () => true,
  },
  remove: {
    operation: deleteNode,
    plan: ({ metadata }) => ({ operation: deleteNode, params: { name: metadata.name } }),
  },
}
