// Role bindings: who has a role in a namespace.
import * as t from 'typebox'
import { Continue, inNamespace, listOperation, MadeListQuery, operationsOf } from '../operation.ts'
import { ExpectedVersion, ResourceVersion } from '../records.ts'

export const Subject = t.Object(
  {
    kind: t.Enum(['User', 'ServiceAccount']),
    name: t.String(),
    namespace: t.Optional(t.String({ description: 'Namespace of a service account' })),
    implicit: t.Optional(t.Boolean({ description: 'An account of this namespace, which always has the role' })),
  },
  { title: 'Subject' },
)
export type Subject = t.Static<typeof Subject>

export const SubjectsInput = t.Object(
  {
    users: t.Optional(t.Array(t.String({ maxLength: 320 }), { maxItems: 1_000, description: 'Email addresses' })),
    serviceaccounts: t.Optional(
      t.Array(t.Object({ name: t.String({ maxLength: 300 }), namespace: t.String({ maxLength: 300 }) }), {
        maxItems: 1_000,
      }),
    ),
    resourceVersion: ExpectedVersion,
  },
  { title: 'SubjectsInput' },
)
export type SubjectsInput = t.Static<typeof SubjectsInput>

const RoleBinding = t.Object(
  {
    name: t.String({ description: 'The role' }),
    namespace: t.String(),
    subjects: t.Array(Subject),
    resourceVersion: ResourceVersion,
  },
  { title: 'RoleBinding' },
)
export type RoleBinding = t.Static<typeof RoleBinding>

/** The content of one record and not a list of records, so it has no watch. */
const Subjects = t.Object({ items: t.Array(Subject), continue: Continue }, { title: 'Subjects' })

const noun = 'role-bindings'
const operation = operationsOf({ noun, allow: 'admin' })
const all = `${inNamespace}/rolebindings` as const
const path = `${all}/{role}/subjects` as const
const params = { namespace: 'svc-default', role: 'svc-dev' }
const body = { users: ['ana@example.com'], serviceaccounts: [] }
const example = { params, response: { items: [{ kind: 'User', name: 'ana@example.com' }] } }

export const listRoleBindings = listOperation({
  id: 'listRoleBindings',
  noun,
  path: all,
  allow: 'admin',
  summary: 'List the role bindings of a namespace',
  item: RoleBinding,
  refuses: ['NotFound'],
  example: {
    params: { namespace: 'svc-default' },
    item: {
      name: 'svc-dev',
      namespace: 'svc-default',
      subjects: [{ kind: 'User', name: 'ana@example.com' }],
      resourceVersion: '12',
    },
  },
})

export const listSubjects = operation({
  id: 'listSubjects',
  method: 'GET',
  path,
  summary: 'List the subjects of a role in a namespace',
  description: 'In the default namespace every user is a developer until an administrator removes them.',
  query: MadeListQuery,
  madeOf: Subject,
  response: Subjects,
  refuses: ['NotFound'],
  example,
})

export const addSubjects = operation({
  id: 'addSubjects',
  method: 'POST',
  path: `${path}/add`,
  summary: 'Add users and service accounts to a role in a namespace',
  involves: 'params.role',
  past: 'granted role {name}',
  tells: ['users', 'serviceaccounts'],
  body: SubjectsInput,
  response: Subjects,
  refuses: ['NotFound', 'Invalid', 'Conflict'],
  example: { ...example, body },
})

export const removeSubjects = operation({
  id: 'removeSubjects',
  method: 'DELETE',
  path: `${path}/remove`,
  summary: 'Remove users and service accounts from a role in a namespace',
  involves: 'params.role',
  past: 'revoked role {name}',
  tells: ['users', 'serviceaccounts'],
  body: SubjectsInput,
  response: Subjects,
  refuses: ['NotFound', 'Invalid', 'Conflict'],
  example: { params, body, response: { items: [] } },
})
