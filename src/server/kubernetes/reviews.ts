// Reviews of the caller's identity and permissions: SelfSubjectReview, SelfSubjectAccessReview and SelfSubjectRulesReview.
import type { Operation } from '../../api/operation.ts'
import { displayName, type Principal } from '../../auth/principal.ts'
import type { Roles } from '../../auth/roles.ts'
import { realNamespace } from '../../rules/names.ts'
import type { Settings } from '../config/settings.ts'
import { denied } from '../gate/authenticate.ts'
import type { ReviewResource } from './discovery.ts'
import { type Kind, type ObjectFields, objectFields, verbsOf } from './kinds/kind.ts'

interface ReviewServices {
  readonly roles: Roles
  readonly settings: Pick<Settings, 'compat'>
  readonly kinds: readonly Kind[]
}

type Review = (services: ReviewServices, principal: Principal, spec: ObjectFields) => ObjectFields

const authentication = 'authentication.k8s.io'
const authorization = 'authorization.k8s.io'

export const reviews: readonly (ReviewResource & { readonly review: Review })[] = [
  ...['v1', 'v1beta1'].map((version) => ({
    group: authentication,
    version,
    plural: 'selfsubjectreviews',
    kind: 'SelfSubjectReview',
    review: identity,
  })),
  {
    group: authorization,
    version: 'v1',
    plural: 'selfsubjectaccessreviews',
    kind: 'SelfSubjectAccessReview',
    review: access,
  },
  {
    group: authorization,
    version: 'v1',
    plural: 'selfsubjectrulesreviews',
    kind: 'SelfSubjectRulesReview',
    review: rules,
  },
]

function identity({ roles }: ReviewServices, principal: Principal): ObjectFields {
  const isAdmin = roles.roleOf(principal, undefined) === 'admin'
  const uid = 'uid' in principal ? principal.uid : undefined
  const groups = ['system:authenticated', ...(isAdmin ? ['svc3:administrators'] : [])]
  return { userInfo: { username: displayName(principal), ...(uid !== undefined && { uid }), groups } }
}

/** The operations whose permission a verb needs; none if the kind does not have the verb. */
export function operationsOfVerb(kind: Kind, verb: string): readonly Operation[] {
  if (!verbsOf(kind).includes(verb)) return []
  if (verb === 'create') return kind.create?.operations ?? []
  if (verb === 'update' || verb === 'patch') return kind.update?.operations ?? []
  if (verb === 'delete' || verb === 'deletecollection') return kind.remove ? [kind.remove] : []
  return [kind.list]
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '')

function access(services: ReviewServices, principal: Principal, spec: ObjectFields): ObjectFields {
  const { resourceAttributes, nonResourceAttributes } = spec
  if (resourceAttributes === undefined && nonResourceAttributes !== undefined)
    return { allowed: ['get', 'head'].includes(text(objectFields(nonResourceAttributes).verb)) }
  const { group, resource, verb, namespace } = objectFields(resourceAttributes)
  const real = realNamespace(text(namespace), services.settings.compat.namespaceAliases)
  if (text(resource) === '*' || text(verb) === '*')
    return {
      allowed: services.roles.mayCall(principal, undefined, { allow: 'admin', accounts: 'none' }),
      reason: 'Only people who are administrators may do all',
    }
  const kind = services.kinds.find(
    (each) => each.plural === resource && (text(group) === '*' || each.group === text(group)),
  )
  if (!kind) return { allowed: false, reason: 'Resource not found' }
  return judged(services, principal, kind, text(verb), real)
}

function judged(
  services: ReviewServices,
  principal: Principal,
  kind: Kind,
  verb: string,
  namespace: string,
): ObjectFields {
  const operations = operationsOfVerb(kind, verb)
  if (operations.length === 0) return { allowed: false, reason: `${verb} is not possible for ${kind.plural}` }
  const refusal = operations.map((operation) => denied(operation, principal, namespace, services)).find(Boolean)
  return refusal ? { allowed: false, reason: refusal.message } : { allowed: true }
}

function rules(services: ReviewServices, principal: Principal, spec: ObjectFields): ObjectFields {
  const namespace = realNamespace(text(spec.namespace), services.settings.compat.namespaceAliases)
  const resourceRules = services.kinds.flatMap((kind) => {
    const verbs = verbsOf(kind).filter((verb) => judged(services, principal, kind, verb, namespace).allowed === true)
    return verbs.length === 0 ? [] : [{ verbs, apiGroups: [kind.group], resources: [kind.plural] }]
  })
  const nonResourceRules = [
    { verbs: ['get'], nonResourceURLs: ['/api', '/api/*', '/apis', '/apis/*', '/openapi/*', '/version'] },
  ]
  return { resourceRules, nonResourceRules, incomplete: false }
}
