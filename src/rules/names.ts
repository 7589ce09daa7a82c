// Valid names, and aliases for names that clients of Orka use.

export const defaultNamespace = 'svc-default'

/**
 * Real prefixes by alias: `orka-default` becomes `svc-default`. Public clients hard-code such names;
 * `compat.namespaceAliases` sets them.
 */
type NamespaceAliases = Readonly<Record<string, string>>
export const publicAliases: NamespaceAliases = { 'orka-': 'svc-' }

/** Replaces an alias by the real name. No other code does. */
export function realNamespace(name: string, aliases: NamespaceAliases = publicAliases): string {
  for (const [alias, real] of Object.entries(aliases)) {
    if (name.startsWith(alias)) return real + name.slice(alias.length)
  }
  return name
}

/** Text with the name of the default namespace as callers of the program `orka3` know it. Other programs have ours. */
export const spelledAs = (program: string, text: string): string =>
  /(^|\/)orka3'?$/.test(program) ? text.replaceAll(/\bsvc-default\b/g, 'orka-default') : text

const namespaceForm = /^svc-[a-z0-9]([a-z0-9-]*[a-z0-9])?$/
export const isNamespaceName = (name: string): boolean => name.length <= 63 && namespaceForm.test(name)

const dnsName = /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/
export const isServiceAccountName = (name: string): boolean => name.length <= 253 && dnsName.test(name)

/** Without characters that have a meaning in lists, quotes or headers. */
const email =
  /^[\p{L}\p{M}\p{N}.!#$%&'*+/=?^_{|}~-]{1,64}@[\p{L}\p{N}](?:[\p{L}\p{M}\p{N}.-]{0,251}[\p{L}\p{M}\p{N}])?$/u
export const isUserName = (name: string): boolean => email.test(name) && !foldsToAscii(name)

/** An e-mail address as a user name, in lower case; undefined if it is not valid. */
export const userNameOf = (address: string): string | undefined =>
  isUserName(address) && isUserName(address.toLowerCase()) ? address.toLowerCase() : undefined

/** Some letters, such as the Kelvin sign, become ASCII in lower case and so another user's name. */
const foldsToAscii = (text: string): boolean =>
  [...text].some((letter) => /[^\0-\x7f]/.test(letter) && /[\0-\x7f]/.test(letter.toLowerCase()))

/** The role that can be bound. `orka-dev` is an alias, as for namespaces. */
export const devRole = 'svc-dev'

const vmForm = /^[a-z]([a-z0-9-]*[a-z0-9])?$/
export const isVmName = (name: string): boolean => name.length <= 63 && vmForm.test(name)
export const vmNameRule =
  'at most 63 lowercase letters, digits and dashes, beginning with a letter and ending with a letter or digit'

const suffixLength = 5
const longestPrefix = 63 - 1 - suffixLength

/** What is wrong with the name of a VM, or with the prefix of a generated name; undefined if it is valid. */
export function vmNameProblem(name: string, isPrefix: boolean): string | undefined {
  if (isVmName(isPrefix ? `${name}-${'0'.repeat(suffixLength)}` : name)) return undefined
  if (isPrefix && isVmName(name))
    return `is too long with the suffix that is put behind it: at most ${longestPrefix} characters, not ${name.length}`
  return `is not ${vmNameRule}`
}

const labelForm = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/
export const isVmConfigName = (name: string): boolean => name.length <= 50 && labelForm.test(name)
export const isNodeName = (name: string): boolean => name.length <= 63 && dnsName.test(name)
/** The subject of a node's certificate. It has the uid, because another host may later get the same name. */
export const nodeUri = (uid: string): string => `svc3://node/${uid}`

const tagForm = /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/
export const isTag = (tag: string): boolean => tag.length <= 63 && tagForm.test(tag)

/** The suffix of a generated name, from bytes that are random or derived from a request. */
const suffixLetters = 'abcdefghijklmnopqrstuvwxyz0123456789'
export const nameSuffix = (bytes: Uint8Array): string =>
  [...bytes.subarray(0, suffixLength)].map((byte) => suffixLetters[byte % suffixLetters.length]).join('')
