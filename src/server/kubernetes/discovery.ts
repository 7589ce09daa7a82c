// Discovery: /api, /apis and their groups, in the plain and in the aggregated form, from the table of kinds.
import { parseAccept } from './accept.ts'
import { apiVersionOf, type Kind, statusVerbs, verbsOf } from './kinds/kind.ts'

/** A resource that clients can only create; nothing is stored. */
export interface ReviewResource {
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly kind: string
}

interface Catalogue {
  readonly kinds: readonly Kind[]
  readonly reviews: readonly ReviewResource[]
}

interface TypedBody {
  readonly type: string
  readonly body: unknown
}

const aggregatedVersions = ['v2', 'v2beta1'] as const

const plain = (body: unknown): TypedBody => ({ type: 'application/json', body })

/** The version of the aggregated form that the client prefers. Undefined: it wants the plain form. */
function aggregatedVersion(accept: string | undefined): (typeof aggregatedVersions)[number] | undefined {
  for (const { as, group, version } of parseAccept(accept)) {
    if (as !== 'APIGroupDiscoveryList' || group !== 'apidiscovery.k8s.io') continue
    const known = aggregatedVersions.find((each) => each === version)
    if (known) return known
  }
  return undefined
}

/** /api: the core group. */
export function coreVersions(catalogue: Catalogue, accept: string | undefined, address: string): TypedBody {
  const form = aggregatedVersion(accept)
  if (form) return aggregated(catalogue, form, (group) => group === '')
  return plain({
    kind: 'APIVersions',
    versions: groupsOf(catalogue).has('') ? ['v1'] : [],
    serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: address }],
  })
}

/** /apis: every other group. */
export function groupList(catalogue: Catalogue, accept: string | undefined): TypedBody {
  const form = aggregatedVersion(accept)
  if (form) return aggregated(catalogue, form, (group) => group !== '')
  const groups = [...groupsOf(catalogue).keys()].flatMap((name) => groupBody(catalogue, name) ?? [])
  return plain({ kind: 'APIGroupList', apiVersion: 'v1', groups })
}

/** /apis/GROUP; undefined for an unknown group. */
export function groupBody(catalogue: Catalogue, name: string): object | undefined {
  const versions = groupsOf(catalogue).get(name)
  if (name === '' || !versions) return undefined
  const named = versions.map((version) => ({ groupVersion: `${name}/${version}`, version }))
  return { kind: 'APIGroup', apiVersion: 'v1', name, versions: named, preferredVersion: named[0] }
}

function resourcesOf({ kinds, reviews }: Catalogue, group: string, version: string) {
  const isHere = (each: { readonly group: string; readonly version: string }): boolean =>
    each.group === group && each.version === version
  return [
    ...kinds.filter(isHere).map((kind) => ({
      ...kind,
      isNamespaced: kind.scope !== 'cluster',
      verbs: verbsOf(kind),
      shortNames: kind.shortNames,
      hasStatus: kind.hasStatus === true,
    })),
    ...reviews.filter(isHere).map(({ plural, kind }) => ({
      plural,
      singular: kind.toLowerCase(),
      kind,
      isNamespaced: false,
      verbs: ['create'],
      shortNames: undefined,
      hasStatus: false,
    })),
  ]
}

interface Subresource {
  readonly name: string
  readonly kind: string
  readonly verbs: readonly string[]
}

/** By plural, in addition to `status`. */
const subresources: Readonly<Record<string, readonly Subresource[]>> = {
  pods: [{ name: 'log', kind: 'Pod', verbs: ['get'] }],
  serviceaccounts: [{ name: 'token', kind: 'TokenRequest', verbs: ['create'] }],
}

/** /apis/GROUP/VERSION; undefined for an unknown group or version. */
export function resourceList(catalogue: Catalogue, group: string, version: string): object | undefined {
  if (!groupsOf(catalogue).get(group)?.includes(version)) return undefined
  const resources = resourcesOf(catalogue, group, version).flatMap((resource) => {
    const { plural, singular, kind, isNamespaced: namespaced, verbs, shortNames, hasStatus } = resource
    const below = [
      ...(hasStatus ? [{ name: 'status', kind, verbs: statusVerbs }] : []),
      ...(subresources[plural] ?? []),
    ]
    return [
      { name: plural, singularName: singular, namespaced, kind, verbs, ...(shortNames && { shortNames }) },
      ...below.map((each) => ({ ...each, name: `${plural}/${each.name}`, singularName: '', namespaced })),
    ]
  })
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: apiVersionOf({ group, version }), resources }
}

/** Group → its versions, the preferred one first. */
function groupsOf({ kinds, reviews }: Catalogue): Map<string, string[]> {
  const groups = new Map<string, string[]>()
  for (const { group, version } of [...kinds, ...reviews]) {
    const known = groups.get(group) ?? []
    if (!known.includes(version)) known.push(version)
    groups.set(group, known)
  }
  return groups
}

function aggregated(catalogue: Catalogue, form: string, isWanted: (group: string) => boolean): TypedBody {
  const resources = (group: string, version: string) =>
    resourcesOf(catalogue, group, version).map(
      ({ plural, singular, kind, isNamespaced, verbs, shortNames, hasStatus }) => ({
        resource: plural,
        responseKind: { group, version, kind },
        scope: isNamespaced ? 'Namespaced' : 'Cluster',
        singularResource: singular,
        verbs,
        ...(shortNames && { shortNames }),
        ...(hasStatus && {
          subresources: [{ subresource: 'status', responseKind: { group, version, kind }, verbs: statusVerbs }],
        }),
      }),
    )
  const items = [...groupsOf(catalogue)]
    .filter(([group]) => isWanted(group))
    .map(([group, versions]) => ({
      metadata: { name: group, creationTimestamp: null },
      versions: versions.map((version) => ({
        version,
        resources: resources(group, version),
        freshness: 'Current',
      })),
    }))
  return {
    type: `application/json;g=apidiscovery.k8s.io;v=${form};as=APIGroupDiscoveryList`,
    body: { kind: 'APIGroupDiscoveryList', apiVersion: `apidiscovery.k8s.io/${form}`, metadata: {}, items },
  }
}
