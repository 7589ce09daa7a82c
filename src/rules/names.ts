// What things may be called, and the names that clients of the original service use for ours.

export const defaultNamespace = 'svc-default'

/** Prefix → prefix: `orka-default` is `svc-default`. Public clients hard-code it; `compat.namespaceAliases` sets it. */
type NamespaceAliases = Readonly<Record<string, string>>
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

const dnsName = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/
export const isServiceAccountName = (name: string): boolean => name.length <= 253 && dnsName.test(name)

/** As an identity provider writes them, but nothing that means something in a list, in quotes or in a header. */
const email =
  /^[\p{L}\p{M}\p{N}.!#$%&'*+/=?^_{|}~-]{1,64}@[\p{L}\p{N}](?:[\p{L}\p{M}\p{N}.-]{0,251}[\p{L}\p{M}\p{N}])?$/u
export const isUserName = (name: string): boolean => email.test(name) && !foldsToAscii(name)

/** An e-mail address as the name of a user: in lower case. Undefined when it cannot be one. */
export const userNameOf = (address: string): string | undefined =>
  isUserName(address) && isUserName(address.toLowerCase()) ? address.toLowerCase() : undefined

/** Letters such as the Kelvin sign become a plain k in lower case: somebody else's name. */
const foldsToAscii = (text: string): boolean =>
  [...text].some((letter) => /[^\0-\x7f]/.test(letter) && /[\0-\x7f]/.test(letter.toLowerCase()))

/** The role that can be bound. `orka-dev` is its alias, by the same rule as for namespaces. */
export const devRole = 'svc-dev'

/** Begins with a letter, ends with a letter or digit; unique in its namespace. */
const vmForm = /^[a-z]([a-z0-9-]*[a-z0-9])?$/
export const isVmName = (name: string): boolean => name.length <= 63 && vmForm.test(name)
export const vmNameRule =
  'at most 63 lowercase letters, digits and dashes, beginning with a letter and ending with a letter or digit'

const suffixLength = 5
const longestPrefix = 63 - 1 - suffixLength

/** What is wrong with the name of a VM, or with the beginning of one that is made; undefined when nothing is. */
export function vmNameProblem(name: string, isPrefix: boolean): string | undefined {
  if (isVmName(isPrefix ? `${name}-${'0'.repeat(suffixLength)}` : name)) return undefined
  if (isPrefix && isVmName(name))
    return `is too long with the suffix that is put behind it: at most ${longestPrefix} characters, not ${name.length}`
  return `is not ${vmNameRule}`
}

/** A DNS label. */
const labelForm = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/
export const isVmConfigName = (name: string): boolean => name.length <= 50 && labelForm.test(name)
export const isNodeName = (name: string): boolean => name.length <= 63 && dnsName.test(name)
/** What the certificate of a node is for: by its uid, because another host may get its name one day. */
export const nodeUri = (uid: string): string => `svc3://node/${uid}`

const tagForm = /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/
export const isTag = (tag: string): boolean => tag.length <= 63 && tagForm.test(tag)

/** The end of a generated name, from bytes that are random or stand for a request. */
const suffixLetters = 'abcdefghijklmnopqrstuvwxyz0123456789'
export const nameSuffix = (bytes: Uint8Array): string =>
  [...bytes.subarray(0, suffixLength)].map((byte) => suffixLetters[byte % suffixLetters.length]).join('')
