// What a pushed image says of itself with the keys that registries and other clients know (OCI image spec 1.1, annotations).
// Of the reference it was pushed to and the records it was made from, and nothing of when it was sent: sent again, it is the
// same. Pure.

const key = (name: string): string => `org.opencontainers.image.${name}`

/** What clients such as oras call the file of a layer. */
export const titleKey = key('title')

export type Annotations = Readonly<Record<string, string>>

/** A reference to an image in a registry. */
interface Place {
  readonly registry: string
  readonly repository: string
  readonly tag: string | undefined
  readonly digest: string | undefined
}

interface Pushed {
  readonly to: Place
  /** When the push was requested, RFC 3339. */
  readonly createdAt?: string | undefined
  /** What the disk was made from, where that is in a registry, and the address of that registry. */
  readonly from?: (Place & { readonly server: string }) | undefined
}

export function annotationsOf({ to, createdAt, from }: Pushed): Annotations {
  return {
    ...(createdAt !== undefined && { [key('created')]: createdAt }),
    [titleKey]: to.repository.slice(to.repository.lastIndexOf('/') + 1),
    ...(to.tag !== undefined && { [key('version')]: to.tag }),
    ...(from && {
      [key('source')]: `${from.server}/${from.repository}`,
      [key('base.name')]: `${from.registry}/${from.repository}${from.tag === undefined ? '' : `:${from.tag}`}`,
      ...(from.digest !== undefined && { [key('base.digest')]: from.digest }),
    }),
  }
}
