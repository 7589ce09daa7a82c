// What there is to ask for: /api, /apis and their groups, plain and aggregated (both versions that clients name), made
// from the table of kinds.
import { parseAccept } from './accept.ts'
import { apiVersionOf, type Kind, statusVerbs, verbsOf } from './kinds/kind.ts'

/** A resource that is only created: what it answers is made on the spot. */
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

const served = ['v2', 'v2beta1'] as const

interface Answered {
  readonly type: string
  readonly body: unknown
}

/** Plural → what it has besides its objects. */
const subresources: Readonly<Record<string, readonly { name: string; of: string; verbs: readonly string[] }[]>> = {
  pods: [{ name: 'log', of: 'Pod', verbs: ['get'] }],
  serviceaccounts: [{ name: 'token', of: 'TokenRequest', verbs: ['create'] }],
}

const plain = (body: unknown): Answered => ({ type: 'application/json', body })

/** The version of the aggregated form that the client names first; undefined: it wants the plain one. */
function aggregatedFor(accept: string | undefined): (typeof served)[number] | undefined {
  const entries = parseAccept(accept)
  for (const { as, group, version } of entries)
    if (as === 'APIGroupDiscoveryList' && group === 'apidiscovery.k8s.io') {
      const known = served.find((each) => each === version)
      if (known) return known
    }
  return undefined
}

/** /api: the core group. */
export function coreVersions(catalogue: Catalogue, accept: string | undefined, address: string): Answered {
  const version = aggregatedFor(accept)
  if (version) return aggregated(catalogue, version, (group) => group === '')
  return plain({
    kind: 'APIVersions',
    versions: groupsOf(catalogue).has('') ? ['v1'] : [],
    serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: address }],
  })
}

/** /apis: every other group. */
export function groupList(catalogue: Catalogue, accept: string | undefined): Answered {
  const version = aggregatedFor(accept)
  if (version) return aggregated(catalogue, version, (group) => group !== '')
  const names = [...groupsOf(catalogue).keys()].filter((group) => group !== '')
  return plain({
    kind: 'APIGroupList',
    apiVersion: 'v1',
    groups: names.map((name) => groupBody(catalogue, name)).filter((group) => group !== undefined),
  })
}

/** /apis/GROUP; undefined where there is none. */
export function groupBody(catalogue: Catalogue, name: string): object | undefined {
  const versions = groupsOf(catalogue).get(name)
  if (name === '' || !versions) return undefined
  const shown = versions.map((version) => ({ groupVersion: `${name}/${version}`, version }))
  return { kind: 'APIGroup', apiVersion: 'v1', name, versions: shown, preferredVersion: shown[0] }
}

/** /apis/GROUP/VERSION; undefined where there is none. */
export function resourceList(catalogue: Catalogue, group: string, version: string): object | undefined {
  if (!groupsOf(catalogue).get(group)?.includes(version)) return undefined
  const isHere = (each: { readonly group: string; readonly version: string }): boolean =>
    each.group === group && each.version === version
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: apiVersionOf({ group, version }),
    resources: [
      ...catalogue.kinds.filter(isHere).flatMap((kind) => [
        {
          name: kind.plural,
          singularName: kind.singular,
          namespaced: kind.scope !== 'cluster',
          kind: kind.kind,
          verbs: verbsOf(kind),
          ...(kind.shortNames && { shortNames: kind.shortNames }),
        },
        ...(kind.hasStatus
          ? [
              {
                name: `${kind.plural}/status`,
                singularName: '',
                namespaced: kind.scope !== 'cluster',
                kind: kind.kind,
                verbs: statusVerbs,
              },
            ]
          : []),
        ...(subresources[kind.plural] ?? []).map(({ name, of, verbs }) => ({
          name: `${kind.plural}/${name}`,
          singularName: '',
          namespaced: true,
          kind: of,
          verbs,
        })),
      ]),
      ...catalogue.reviews.filter(isHere).map(({ plural, kind }) => ({
        name: plural,
        singularName: kind.toLowerCase(),
        namespaced: false,
        kind,
        verbs: ['create'],
      })),
    ],
  }
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

function aggregated(catalogue: Catalogue, form: string, isWanted: (group: string) => boolean): Answered {
  const items = [...groupsOf(catalogue)]
    .filter(([group]) => isWanted(group))
    .map(([group, versions]) => ({
      metadata: { name: group, creationTimestamp: null },
      versions: versions.map((version) => ({
        version,
        resources: aggregatedResources(catalogue, group, version),
        freshness: 'Current',
      })),
    }))
  return {
    type: `application/json;g=apidiscovery.k8s.io;v=${form};as=APIGroupDiscoveryList`,
    body: { kind: 'APIGroupDiscoveryList', apiVersion: `apidiscovery.k8s.io/${form}`, metadata: {}, items },
  }
}

function aggregatedResources({ kinds, reviews }: Catalogue, group: string, version: string) {
  const isHere = (each: { readonly group: string; readonly version: string }): boolean =>
    each.group === group && each.version === version
  return [
    ...kinds.filter(isHere).map((kind) => ({
      resource: kind.plural,
      responseKind: { group, version, kind: kind.kind },
      scope: kind.scope === 'cluster' ? 'Cluster' : 'Namespaced',
      singularResource: kind.singular,
      verbs: verbsOf(kind),
      ...(kind.shortNames && { shortNames: kind.shortNames }),
      ...(kind.hasStatus && {
        subresources: [
          { subresource: 'status', responseKind: { group, version, kind: kind.kind }, verbs: statusVerbs },
        ],
      }),
    })),
    ...reviews.filter(isHere).map(({ plural, kind }) => ({
      resource: plural,
      responseKind: { group, version, kind },
      scope: 'Cluster',
      singularResource: kind.toLowerCase(),
      verbs: ['create'],
    })),
  ]
}
