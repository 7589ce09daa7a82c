// Annotations of pushed images, under the keys that registries and other clients know (OCI image spec 1.1). They depend
// only on the image and its reference, so that a repeated push has the same digest.

const key = (name: string): string => `org.opencontainers.image.${name}`

/** Clients such as oras use it as the file name of a layer. */
export const titleKey = key('title')

export type Annotations = Readonly<Record<string, string>>

interface RegistryReference {
  readonly registry: string
  readonly repository: string
  readonly tag: string | undefined
  readonly digest: string | undefined
}

interface Pushed {
  readonly to: RegistryReference
  /** RFC 3339. */
  readonly createdAt?: string | undefined
  /** What the disk was made from, if that is in a registry, and the URL of that registry. */
  readonly from?: (RegistryReference & { readonly server: string }) | undefined
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
