// Kinds of Kubernetes itself, as far as the service has them: Namespace, Node, Pod (one per push job), Event,
// ServiceAccount and RoleBinding.
import * as t from 'typebox'
import { createNamespace, deleteNamespace, listNamespaces, type Namespace } from '../../../api/access/namespaces.ts'
import { addSubjects, listRoleBindings, removeSubjects, type Subject } from '../../../api/access/role-bindings.ts'
import {
  createServiceAccount,
  deleteServiceAccount,
  listServiceAccounts,
  type ServiceAccount,
} from '../../../api/access/service-accounts.ts'
import { cordonNode, deleteNode, listNodes, type Node, uncordonNode } from '../../../api/nodes/nodes.ts'
import type { Operation } from '../../../api/operation.ts'
import { type Event, listEvents } from '../../../api/service/events.ts'
import { setMetadata } from '../../../api/service/metadata.ts'
import { cancelPushJob, listPushJobs, type PushJob } from '../../../api/vms/push-jobs.ts'
import type { NamespaceRecord } from '../../../store/records/collections.ts'
import { fieldsOf, type Kind, type KubeObject, type ObjectInput, type PrinterColumn, sameSpec } from './kind.ts'
import { archLabel, objectSpec, orka } from './orka.ts'
import { column } from './vm-fields.ts'

const core = { group: '', version: 'v1' } as const
const age = column(['Age', 'date', 'metadata.creationTimestamp'])
const any = (description: string) => t.Optional(t.Object({}, { description, additionalProperties: true }))
const Conditions = t.Array(t.Object({ type: t.String(), status: t.String() }, { additionalProperties: true }))

const nameLabel = 'kubernetes.io/metadata.name'
const namespaceLabel = `${orka.group}/namespace`

/** Only its metadata can be changed, by who may do what the operations do. */
const onlyMetadata = (...operations: readonly Operation[]) => ({
  operations: [...operations, setMetadata],
  plan: () => [],
  isAllowed: (before: KubeObject, after: ObjectInput): boolean => sameSpec(before, after),
})

export const namespaceKind: Kind = {
  ...core,
  kind: 'Namespace',
  plural: 'namespaces',
  singular: 'namespace',
  shortNames: ['ns'],
  description: 'A namespace. Deleting it is refused while it has VMs or nodes',
  scope: 'cluster',
  isAliased: true,
  keptAs: 'namespaces',
  recordNamespace: ({ metadata }) => metadata.name,
  computedLabels: [nameLabel, namespaceLabel],
  list: listNamespaces,
  show: ({ name, createdAt }: Namespace, { isTerminating }: NamespaceRecord) => ({
    name,
    createdAt,
    deletedAt: isTerminating ? createdAt : undefined,
    labels: { [nameLabel]: name, [namespaceLabel]: 'true' },
    body: { spec: {}, status: { phase: isTerminating ? 'Terminating' : 'Active' } },
  }),
  schema: { spec: any('Empty'), status: t.Object({ phase: t.String({ description: 'Active or Terminating' }) }) },
  columns: [column(['Status', 'string', 'status.phase']), age],
  create: {
    operations: [createNamespace],
    plan: ({ metadata }) => ({ operation: createNamespace, body: { name: metadata.name } }),
  },
  update: onlyMetadata(createNamespace),
  remove: {
    operation: deleteNamespace,
    plan: ({ metadata }) => ({ operation: deleteNamespace, namespace: metadata.name }),
  },
  fieldPaths: { name: 'metadata.name' },
}

const hostLabel = 'kubernetes.io/hostname'
const placeLabel = 'svc3/namespace'

function placeOf(object: KubeObject): string {
  return object.metadata.labels[placeLabel] ?? ''
}

export const nodeKind: Kind = {
  ...core,
  kind: 'Node',
  plural: 'nodes',
  singular: 'node',
  shortNames: ['no'],
  description: 'A node of any namespace. kubectl cordon and uncordon work on it',
  scope: 'cluster',
  keptAs: 'nodes',
  recordNamespace: placeOf,
  computedLabels: [archLabel, hostLabel, placeLabel],
  list: listNodes,
  show: (node: Node) => ({
    name: node.name,
    uid: node.uid,
    createdAt: node.createdAt,
    labels: { [archLabel]: node.architecture, [hostLabel]: node.name, [placeLabel]: node.namespace },
    body: {
      spec: node.cordoned ? { unschedulable: true } : {},
      status: {
        capacity: { cpu: String(node.allocatableCpu), memory: node.allocatableMemory },
        allocatable: { cpu: String(node.availableCpu), memory: node.availableMemory },
        addresses: [
          { type: 'InternalIP', address: node.nodeIP },
          { type: 'Hostname', address: node.name },
        ],
        conditions: [
          {
            type: 'Ready',
            status: node.phase === 'READY' ? 'True' : 'False',
            reason: node.phase === 'READY' ? 'AgentReady' : 'AgentNotReady',
            message: node.reason ?? '',
            lastHeartbeatTime: node.lastSeenAt ?? node.createdAt,
            lastTransitionTime: node.createdAt,
          },
        ],
        // Typed clients insist on every field.
        nodeInfo: {
          machineID: node.uid,
          systemUUID: node.uid,
          bootID: '',
          kernelVersion: '',
          kubeProxyVersion: '',
          architecture: node.architecture,
          kubeletVersion: node.version,
          containerRuntimeVersion: node.driver,
          osImage: node.os,
          operatingSystem: node.os.toLowerCase().startsWith('linux') ? 'linux' : 'darwin',
        },
      },
    },
  }),
  schema: {
    spec: t.Object({ unschedulable: t.Optional(t.Boolean({ description: 'Cordoned: no new VMs' })) }),
    status: t.Object({
      capacity: any('What the node has'),
      allocatable: any('What is free'),
      addresses: t.Optional(t.Array(t.Object({ type: t.String(), address: t.String() }))),
      conditions: t.Optional(Conditions),
      nodeInfo: any('Versions'),
    }),
  },
  selectable: ['spec.unschedulable'],
  columns: [
    {
      name: 'Status',
      type: 'string',
      description: 'Ready, NotReady, SchedulingDisabled',
      cell: (object) => {
        const [ready] = (fieldsOf(object.status).conditions ?? []) as readonly { status: string }[]
        const words = [
          ready?.status === 'True' ? 'Ready' : 'NotReady',
          ...(objectSpec(object).unschedulable === true ? ['SchedulingDisabled'] : []),
        ]
        return words.join(',')
      },
    },
    { name: 'Roles', type: 'string', description: 'Always worker', cell: () => 'worker' },
    age,
    column(['Version', 'string', 'status.nodeInfo.kubeletVersion']),
    column(['Internal-IP', 'string', 'status.addresses.0.address', true]),
    column(['OS-Image', 'string', 'status.nodeInfo.osImage', true]),
    column(['Container-Runtime', 'string', 'status.nodeInfo.containerRuntimeVersion', true]),
  ],
  update: {
    operations: [cordonNode, uncordonNode],
    plan: (before, after) => {
      const [was, is] = [before, after].map((object) => objectSpec(object).unschedulable === true)
      if (was === is) return []
      const operation = is ? cordonNode : uncordonNode
      return [{ operation, namespace: placeOf(before), params: { name: before.metadata.name }, body: {} }]
    },
    isAllowed: (before, after) => sameSpec(before, after, (field) => field === 'unschedulable'),
  },
  remove: {
    operation: deleteNode,
    plan: (object) => ({ operation: deleteNode, namespace: placeOf(object), params: { name: object.metadata.name } }),
  },
}

/** A job that was cancelled has failed, as far as clients know. */
const podPhases: Readonly<Record<PushJob['status'], string>> = {
  Pending: 'Pending',
  Running: 'Running',
  Succeeded: 'Succeeded',
  Failed: 'Failed',
  Cancelled: 'Failed',
}

const typeLabel = `${orka.group}/job.type`
const jobLabel = 'batch.kubernetes.io/job-name'
const oldJobLabel = 'job-name'
const referenceAnnotation = `${orka.group}/oci-image`

export const podKind: Kind = {
  ...core,
  kind: 'Pod',
  plural: 'pods',
  singular: 'pod',
  shortNames: ['po'],
  description: 'A push job. Deleting it cancels the push',
  scope: 'namespace',
  keptAs: 'pushjobs',
  computedLabels: [typeLabel, jobLabel, oldJobLabel],
  computedAnnotations: [referenceAnnotation],
  list: listPushJobs,
  show: (job: PushJob) => ({
    name: job.name,
    namespace: job.namespace,
    createdAt: job.startedAt,
    labels: {
      [typeLabel]: 'registry-push',
      [jobLabel]: job.name,
      [oldJobLabel]: job.name,
    },
    annotations: {
      [referenceAnnotation]: job.image,
      'svc3/vm': job.vm,
      'svc3/progress': `${job.progress.percent}%`,
      'svc3/digest': job.digest,
    },
    body: {
      spec: { restartPolicy: 'Never', containers: [{ name: 'push', image: job.image }] },
      status: {
        phase: podPhases[job.status],
        startTime: job.startedAt,
        ...(job.phase !== undefined && { reason: job.phase }),
        message: job.errorMessage ?? (job.status === 'Cancelled' ? 'Cancelled' : ''),
      },
    },
  }),
  schema: {
    spec: t.Object({
      restartPolicy: t.Optional(t.String()),
      containers: t.Optional(
        t.Array(t.Object({ name: t.String(), image: t.String({ description: 'Reference that is pushed to' }) })),
      ),
    }),
    status: t.Object({
      phase: t.String({ description: 'Pending, Running, Succeeded or Failed' }),
      startTime: t.String({ format: 'date-time' }),
      reason: t.Optional(t.String({ description: 'Current step' })),
      message: t.String({ description: 'Why it failed' }),
    }),
  },
  selectable: ['status.phase', 'spec.nodeName'],
  columns: [column(['Status', 'string', 'status.phase']), age],
  update: onlyMetadata(),
  remove: {
    operation: cancelPushJob,
    plan: ({ metadata }) => ({ operation: cancelPushJob, params: { job: metadata.name } }),
  },
  log: (job: PushJob) => ({
    lines: [
      `${job.startedAt} Pushing VM ${job.vm} to ${job.image}`,
      `${job.status}${job.phase === undefined ? '' : `: ${job.phase}`}, ${job.progress.percent}% (${job.progress.bytesDone} of ${job.progress.bytesTotal} bytes)`,
      ...(job.waiting ? [`Waiting until ${job.waiting.nextTryAt}: ${job.waiting.reason}`] : []),
      ...(job.errorMessage === undefined ? [] : [job.errorMessage]),
      ...(job.digest === undefined ? [] : [`Digest ${job.digest}`]),
    ],
    isOver: job.status !== 'Pending' && job.status !== 'Running',
  }),
}

/** Kinds of the REST API in events → those of this wire. */
const involvedKinds: Readonly<Record<string, readonly [kind: string, apiVersion: string]>> = {
  vms: ['VirtualMachineInstance', 'orka.macstadium.com/v1'],
  'vm-configs': ['VirtualMachineConfig', 'orka.macstadium.com/v1'],
  images: ['Image', 'orka.macstadium.com/v1'],
  isos: ['Iso', 'orka.macstadium.com/v1'],
  nodes: ['OrkaNode', 'orka.macstadium.com/v1'],
  namespaces: ['Namespace', 'v1'],
  'push-jobs': ['Pod', 'v1'],
  'service-accounts': ['ServiceAccount', 'v1'],
}

const reason: PrinterColumn = column(['Reason', 'string', 'reason'])

export const eventKind: Kind = {
  ...core,
  kind: 'Event',
  plural: 'events',
  singular: 'event',
  shortNames: ['ev'],
  description: 'What happened, by whom',
  scope: 'namespace',
  hasGeneratedNames: true,
  list: listEvents,
  show: (event: Event) => {
    const [kind, apiVersion] = involvedKinds[event.involved.kind] ?? [event.involved.kind, '']
    return {
      name: event.name,
      namespace: event.namespace,
      createdAt: event.at,
      body: {
        involvedObject: { kind, apiVersion, name: event.involved.name, namespace: event.namespace },
        reason: event.reason,
        message: event.message,
        type: event.type,
        count: 1,
        firstTimestamp: event.at,
        lastTimestamp: event.at,
        eventTime: null,
        source: { component: event.actor },
        reportingComponent: event.actor,
        reportingInstance: '',
      },
    }
  },
  schema: {
    involvedObject: any('What it happened to'),
    reason: t.Optional(t.String({ description: 'In one word' })),
    message: t.Optional(t.String()),
    type: t.Optional(t.String({ description: 'Normal or Warning' })),
    count: t.Optional(t.Integer()),
    firstTimestamp: t.Optional(t.String({ format: 'date-time' })),
    lastTimestamp: t.Optional(t.String({ format: 'date-time' })),
    source: any('Who did it'),
    reportingComponent: t.Optional(t.String()),
  },
  selectable: [
    'involvedObject.kind',
    'involvedObject.name',
    'involvedObject.namespace',
    'involvedObject.apiVersion',
    'reason',
    'type',
  ],
  // Events know what they are about by its name.
  ignoredSelectors: ['involvedObject.uid', 'involvedObject.resourceVersion', 'involvedObject.fieldPath'],
  columns: [
    column(['Last Seen', 'date', 'lastTimestamp']),
    column(['Type', 'string', 'type']),
    reason,
    {
      name: 'Object',
      type: 'string',
      description: 'What it happened to',
      cell: (object) => {
        const { kind, name } = fieldsOf(object.involvedObject)
        return `${String(kind).toLowerCase()}/${String(name)}`
      },
    },
    column(['Source', 'string', 'source.component', true]),
    column(['Message', 'string', 'message']),
  ],
}

export const serviceAccountKind: Kind = {
  ...core,
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  singular: 'serviceaccount',
  shortNames: ['sa'],
  description: 'An account for programs. kubectl create token makes a token',
  scope: 'namespace',
  keptAs: 'serviceaccounts',
  list: listServiceAccounts,
  show: ({ name, namespace, uid, createdAt }: ServiceAccount) => ({ name, namespace, uid, createdAt, body: {} }),
  schema: {},
  columns: [age],
  create: {
    operations: [createServiceAccount],
    plan: ({ metadata }) => ({ operation: createServiceAccount, params: { serviceaccount: metadata.name } }),
  },
  update: onlyMetadata(createServiceAccount),
  remove: {
    operation: deleteServiceAccount,
    plan: ({ metadata }) => ({ operation: deleteServiceAccount, params: { serviceaccount: metadata.name } }),
  },
}

interface RoleBinding {
  readonly name: string
  readonly namespace: string
  readonly subjects: readonly Subject[]
}

/** Nobody noted when a role was first given. */
const since = '1970-01-01T00:00:00Z'
const rbac = 'rbac.authorization.k8s.io'

const subjectsOf = (object: Readonly<Record<string, unknown>>): readonly Subject[] =>
  Array.isArray(object.subjects) ? (object.subjects as readonly Subject[]) : []

const grouped = (subjects: readonly Subject[], namespace: string | undefined) => ({
  users: subjects.filter(({ kind }) => kind === 'User').map(({ name }) => name),
  serviceaccounts: subjects
    .filter(({ kind }) => kind === 'ServiceAccount')
    .map(({ name, namespace: place = namespace ?? '' }) => ({ name, namespace: place })),
})

export const roleBindingKind: Kind = {
  group: rbac,
  version: 'v1',
  kind: 'RoleBinding',
  plural: 'rolebindings',
  singular: 'rolebinding',
  description: 'Who is a developer of a namespace. There is one, named after the role svc-dev (or orka-dev)',
  scope: 'namespace',
  isAliased: true,
  keptAs: 'rolebindings',
  list: listRoleBindings,
  show: ({ name, namespace, subjects }: RoleBinding) => ({
    name,
    namespace,
    createdAt: since,
    body: {
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name },
      subjects: subjects.map((subject) => ({ ...(subject.kind === 'User' && { apiGroup: rbac }), ...subject })),
    },
  }),
  schema: {
    roleRef: any('The role'),
    subjects: t.Optional(
      t.Array(
        t.Object({
          kind: t.String({ description: 'User or ServiceAccount' }),
          apiGroup: t.Optional(t.String()),
          name: t.String(),
          namespace: t.Optional(t.String()),
        }),
      ),
    ),
  },
  columns: [
    {
      name: 'Role',
      type: 'string',
      description: 'Role',
      cell: ({ roleRef }) => `ClusterRole/${fieldsOf(roleRef).name}`,
    },
    age,
    {
      name: 'Users',
      type: 'string',
      description: 'Users',
      isWide: true,
      cell: (object) => grouped(subjectsOf(object), '').users.join(', '),
    },
  ],
  create: {
    operations: [addSubjects],
    plan: (object) => ({
      operation: addSubjects,
      params: { role: object.metadata.name },
      body: grouped(subjectsOf(object), object.metadata.namespace),
    }),
  },
  update: {
    operations: [addSubjects, removeSubjects],
    plan: (before, after) => {
      const key = ({ kind, name, namespace = before.metadata.namespace }: Subject): string =>
        `${kind} ${namespace} ${name}`
      const [was, is] = [subjectsOf(before), subjectsOf(after)]
      const missing = (from: readonly Subject[], of: readonly Subject[]) => {
        const known = new Set(of.map(key))
        return from.filter((subject) => !known.has(key(subject)))
      }
      const { name, namespace } = before.metadata
      return [[addSubjects, missing(is, was)] as const, [removeSubjects, missing(was, is)] as const].flatMap(
        ([operation, subjects]) =>
          subjects.length === 0 ? [] : [{ operation, params: { role: name }, body: grouped(subjects, namespace) }],
      )
    },
    isAllowed: () => true,
  },
  fieldPaths: { users: 'subjects', serviceaccounts: 'subjects' },
}
