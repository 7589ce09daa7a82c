// OrkaNode: a node, in the namespace that it belongs to.
import * as t from 'typebox'
import { deleteNode, listNodes, moveNode, type Node, tagNode, untagNode } from '../../../api/nodes/nodes.ts'
import type { Operation } from '../../../api/operation.ts'
import { architecture, column, textColumn, wide } from './columns.ts'
import { callFor, defineKind, type ObjectFields, objectFields } from './kind.ts'
import { archLabel, orka, svc3Name } from './orka.ts'

function tagsOf({ spec }: ObjectFields): readonly string[] {
  const { tags } = objectFields(spec)
  return Array.isArray(tags) ? (tags as string[]) : []
}

export const orkaNodeKind = defineKind({
  ...orka,
  kind: 'OrkaNode',
  description: 'A node, in the namespace that it belongs to',
  scope: 'namespace',
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
    column('Available-CPU', 'integer', 'status.availableCpu'),
    column('Available-Memory', 'string', 'status.availableMemory'),
    wide('Available-GPU', 'integer', 'status.availableGpu'),
    column('Status', 'string', 'status.phase'),
    wide('IP', 'string', 'status.nodeIP'),
    wide('Allocatable-CPU', 'integer', 'status.allocatableCpu'),
    wide('Allocatable-Memory', 'string', 'status.allocatableMemory'),
    wide('Allocatable-GPU', 'integer', 'status.allocatableGpu'),
    wide('Version', 'string', 'status.kubeletVersion'),
    wide('Runtime', 'string', 'status.containerRuntimeVersion'),
    wide('OS', 'string', 'status.osVersion'),
    architecture('Architecture', true),
    textColumn('Tags', 'Tags', (object) => tagsOf(object).join(','), true),
  ],
  update: {
    operations: [tagNode, untagNode, moveNode],
    plan: (before, after) => {
      const call = (operation: Operation, body: ObjectFields) => ({
        ...callFor(operation, before.metadata.name),
        body,
      })
      const missing = (from: ObjectFields, to: ObjectFields) =>
        tagsOf(from)
          .filter((tag) => !tagsOf(to).includes(tag))
          .map((tag) => ({ tag }))
      const { namespace } = objectFields(after.spec)
      const isMoved = typeof namespace === 'string' && namespace !== objectFields(before.spec).namespace
      return [
        ...missing(after, before).map((body) => call(tagNode, body)),
        ...missing(before, after).map((body) => call(untagNode, body)),
        ...(isMoved ? [call(moveNode, { namespace })] : []),
      ]
    },
    mutable: 'all',
  },
  remove: deleteNode,
})
