// What things may be called, and the names that clients of the original service use for ours.

export const defaultNamespace = 'svc-default'

/** Prefix → prefix: `orka-default` is `svc-default`. Public clients hard-code it; `compat.namespaceAliases` sets it. */
export type NamespaceAliases = Readonly<Record<string, string>>
export const publicAliases: NamespaceAliases = { 'orka-': 'svc-' }

/** The one place where an alias becomes the real name. */
export function realNamespace(name: string, aliases: NamespaceAliases = publicAliases): string {
  for (const [alias, real] of Object.entries(aliases)) {
    if (name.startsWith(alias)) return real + name.slice(alias.length)
  }
  return name
}

const namespaceForm = /^svc-[a-z0-9]([a-z0-9-]*[a-z0-9])?$/
export const isNamespaceName = (name: string): boolean => name.length <= 63 && namespaceForm.test(name)
