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
import { type Event, listEvents } from '../../../api/service/events.ts'
import { setMetadata } from '../../../api/service/metadata.ts'
import { cancelPushJob, listPushJobs, type PushJob } from '../../../api/vms/push-jobs.ts'
import type { NamespaceRecord } from '../../../store/records/collections.ts'
import { age, column, textColumn, wide } from './columns.ts'
import { callFor, creation, defineKind, type KubeObject, type ObjectFields, objectFields } from './kind.ts'
import { archLabel, orka } from './orka.ts'

const core = { group: '', version: 'v1' } as const
const any = (description: string) => t.Optional(t.Object({}, { description, additionalProperties: true }))
const Conditions = t.Array(t.Object({ type: t.String(), status: t.String() }, { additionalProperties: true }))

const nameLabel = 'kubernetes.io/metadata.name'
const namespaceLabel = `${orka.group}/namespace`

export const namespaceKind = defineKind({
  ...core,
  kind: 'Namespace',
  shortNames: ['ns'],
  description: 'A namespace. Deleting it is refused while it has VMs or nodes',
  scope: 'cluster',
  isAliased: true,
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
  columns: [column('Status', 'string', 'status.phase'), age],
  create: creation(createNamespace, ({ metadata }) => ({ body: { name: metadata.name } })),
  update: { operations: [createNamespace, setMetadata] },
  remove: deleteNamespace,
  fieldPaths: { name: 'metadata.name' },
})

const hostLabel = 'kubernetes.io/hostname'
const nodeNamespaceLabel = 'svc3/namespace'

const namespaceOfNode = ({ metadata }: KubeObject): string => metadata.labels[nodeNamespaceLabel] ?? ''
const isCordoned = ({ spec }: ObjectFields): boolean => objectFields(spec).unschedulable === true

export const nodeKind = defineKind({
  ...core,
  kind: 'Node',
  shortNames: ['no'],
  description: 'A node of any namespace. kubectl cordon and uncordon work on it',
  scope: 'cluster',
  recordNamespace: namespaceOfNode,
  computedLabels: [archLabel, hostLabel, nodeNamespaceLabel],
  list: listNodes,
  show: (node: Node) => ({
    name: node.name,
    uid: node.uid,
    createdAt: node.createdAt,
    labels: { [archLabel]: node.architecture, [hostLabel]: node.name, [nodeNamespaceLabel]: node.namespace },
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
        // Typed clients require every field.
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
    textColumn('Status', 'Ready, NotReady, SchedulingDisabled', (object) => {
      const [ready] = (objectFields(object.status).conditions ?? []) as readonly { status: string }[]
      return `${ready?.status === 'True' ? 'Ready' : 'NotReady'}${isCordoned(object) ? ',SchedulingDisabled' : ''}`
    }),
    textColumn('Roles', 'Always worker', () => 'worker'),
    age,
    column('Version', 'string', 'status.nodeInfo.kubeletVersion'),
    wide('Internal-IP', 'string', 'status.addresses.0.address'),
    wide('OS-Image', 'string', 'status.nodeInfo.osImage'),
    wide('Container-Runtime', 'string', 'status.nodeInfo.containerRuntimeVersion'),
  ],
  update: {
    operations: [cordonNode, uncordonNode],
    plan: (before, after) => {
      if (isCordoned(before) === isCordoned(after)) return []
      const call = callFor(isCordoned(after) ? cordonNode : uncordonNode, before.metadata.name)
      return [{ ...call, namespace: namespaceOfNode(before), body: {} }]
    },
    mutable: ['unschedulable'],
  },
  remove: deleteNode,
})

/** Pods have no phase for cancelled work. */
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

export const podKind = defineKind({
  ...core,
  kind: 'Pod',
  shortNames: ['po'],
  description: 'A push job. Deleting it cancels the push',
  scope: 'namespace',
  computedLabels: [typeLabel, jobLabel, oldJobLabel],
  computedAnnotations: [referenceAnnotation],
  list: listPushJobs,
  show: (job: PushJob) => ({
    name: job.name,
    namespace: job.namespace,
    createdAt: job.startedAt,
    labels: { [typeLabel]: 'registry-push', [jobLabel]: job.name, [oldJobLabel]: job.name },
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
  columns: [column('Status', 'string', 'status.phase'), age],
  update: { operations: [setMetadata] },
  remove: cancelPushJob,
  log: (job: PushJob) => ({
    lines: [
      `${job.startedAt} Pushing VM ${job.vm} to ${job.image}`,
      `${job.status}${job.phase === undefined ? '' : `: ${job.phase}`}, ${job.progress.percent}% (${job.progress.bytesDone} of ${job.progress.bytesTotal} bytes)`,
      ...(job.waiting ? [`Waiting until ${job.waiting.nextTryAt}: ${job.waiting.reason}`] : []),
      ...(job.errorMessage === undefined ? [] : [job.errorMessage]),
      ...(job.digest === undefined ? [] : [`Digest ${job.digest}`]),
    ],
    isComplete: job.status !== 'Pending' && job.status !== 'Running',
  }),
})

const orkaVersion = 'orka.macstadium.com/v1'
/** Noun in events of the REST API → the kind of its objects. */
const involvedKinds: Readonly<Record<string, readonly [kind: string, apiVersion: string]>> = {
  vms: ['VirtualMachineInstance', orkaVersion],
  'vm-configs': ['VirtualMachineConfig', orkaVersion],
  images: ['Image', orkaVersion],
  isos: ['Iso', orkaVersion],
  nodes: ['OrkaNode', orkaVersion],
  namespaces: ['Namespace', 'v1'],
  'push-jobs': ['Pod', 'v1'],
  'service-accounts': ['ServiceAccount', 'v1'],
}

export const eventKind = defineKind({
  ...core,
  kind: 'Event',
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
        count: event.count ?? 1,
        firstTimestamp: event.at,
        lastTimestamp: event.lastAt ?? event.at,
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
  // Events identify their object by name.
  ignoredSelectors: ['involvedObject.uid', 'involvedObject.resourceVersion', 'involvedObject.fieldPath'],
  columns: [
    column('Last Seen', 'date', 'lastTimestamp'),
    column('Type', 'string', 'type'),
    column('Reason', 'string', 'reason'),
    textColumn('Object', 'What it happened to', ({ involvedObject }) => {
      const { kind, name } = objectFields(involvedObject)
      return `${String(kind).toLowerCase()}/${String(name)}`
    }),
    wide('Source', 'string', 'source.component'),
    column('Message', 'string', 'message'),
  ],
})

export const serviceAccountKind = defineKind({
  ...core,
  kind: 'ServiceAccount',
  shortNames: ['sa'],
  description: 'An account for programs. kubectl create token makes a token',
  scope: 'namespace',
  list: listServiceAccounts,
  show: ({ name, namespace, uid, createdAt }: ServiceAccount) => ({ name, namespace, uid, createdAt, body: {} }),
  schema: {},
  columns: [age],
  create: creation(createServiceAccount, ({ metadata }) => callFor(createServiceAccount, metadata.name)),
  update: { operations: [createServiceAccount, setMetadata] },
  remove: deleteServiceAccount,
})

interface RoleBinding {
  readonly name: string
  readonly namespace: string
  readonly subjects: readonly Subject[]
}

/** Role bindings have no time of creation. */
const since = '1970-01-01T00:00:00Z'
const rbac = 'rbac.authorization.k8s.io'

const subjectsOf = ({ subjects }: ObjectFields): readonly Subject[] =>
  Array.isArray(subjects) ? (subjects as readonly Subject[]) : []

const byKind = (subjects: readonly Subject[], namespace = '') => ({
  users: subjects.filter(({ kind }) => kind === 'User').map(({ name }) => name),
  serviceaccounts: subjects
    .filter(({ kind }) => kind === 'ServiceAccount')
    .map((subject) => ({ name: subject.name, namespace: subject.namespace ?? namespace })),
})

export const roleBindingKind = defineKind({
  group: rbac,
  version: 'v1',
  kind: 'RoleBinding',
  description: 'Who is a developer of a namespace. There is one, named after the role svc-dev (or orka-dev)',
  scope: 'namespace',
  isAliased: true,
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
    textColumn('Role', 'Role', ({ roleRef }) => `ClusterRole/${objectFields(roleRef).name}`),
    age,
    textColumn('Users', 'Users', (object) => byKind(subjectsOf(object)).users.join(', '), true),
  ],
  create: creation(addSubjects, (object) => ({
    ...callFor(addSubjects, object.metadata.name),
    body: byKind(subjectsOf(object), object.metadata.namespace),
  })),
  update: {
    operations: [addSubjects, removeSubjects],
    plan: (before, after) => {
      const { name, namespace = '' } = before.metadata
      const key = (subject: Subject): string => `${subject.kind} ${subject.namespace ?? namespace} ${subject.name}`
      const change = (operation: typeof addSubjects | typeof removeSubjects, from: ObjectFields, to: ObjectFields) => {
        const kept = new Set(subjectsOf(to).map(key))
        const subjects = subjectsOf(from).filter((subject) => !kept.has(key(subject)))
        return subjects.length === 0 ? [] : [{ ...callFor(operation, name), body: byKind(subjects, namespace) }]
      }
      return [...change(addSubjects, after, before), ...change(removeSubjects, before, after)]
    },
    mutable: 'all',
  },
  fieldPaths: { users: 'subjects', serviceaccounts: 'subjects' },
})
