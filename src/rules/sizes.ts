// Amounts of memory and disk, as in the API (docs/spec.md R48) and for people.

export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

/** `4.80Gi`, as in records of VMs. */
export const gibibytes = (mebibytes: number): string => `${(mebibytes / 1_024).toFixed(2)}Gi`

/** `11.20G`, as in records of nodes. */
export const nodeMemory = (mebibytes: number): string => `${(mebibytes / 1_024).toFixed(2)}G`

const steps = ['', 'K', 'M', 'G', 'T', 'P'] as const

/** For sentences and terminals: `10.6 GiB`, `512 MiB`, `90 B`. */
export function sizeText(bytes: number): string {
  let value = bytes
  let step = 0
  for (; value >= 1_000 && step < steps.length - 1; step++) value /= 1_024
  const digits = step > 0 && value < 99.95 ? Number(value.toFixed(1)) : Math.round(value)
  return `${digits} ${steps[step]}${step > 0 ? 'iB' : 'B'}`
}

/**
 * Converts an amount of a record, such as `4.80Gi` or `412M`, with `sizeText`. Other text, such as `auto`, is
 * unchanged.
 */
export function longSize(text: string): string {
  const [, digits, prefix = ''] = /^([\d.]+)([KMGTP]?)i?$/.exec(text) ?? []
  return digits === undefined
    ? text
    : sizeText(Number(digits) * 1_024 ** steps.indexOf(prefix as (typeof steps)[number]))
}

export const memorySize = (mebibytes: number): string => sizeText(mebibytes * 2 ** 20)

/** Memory of a VM that requests none: its cores' share of 80 % of the node's memory. */
export const automaticMemoryMiB = (cpu: number, node: { readonly cpu: number; readonly memoryMiB: number }): number =>
  Math.max(128, Math.floor((node.memoryMiB * 0.8 * Math.min(cpu, node.cpu)) / node.cpu))

/** GiB with one decimal, as in requests; 0 is automatic. */
export const requestedMemoryMiB = (gibi: number): number => Math.round(gibi * 1_024)

const units = ['M', 'G', 'T'] as const
const bytesOf: Readonly<Record<string, number>> = { M: 2 ** 20, G: 2 ** 30, T: 2 ** 40 }
/** Larger sizes are refused before anything is allocated. */
export const maxDiskBytes = 64 * 2 ** 40
export const diskSizeRule = 'a whole number with M, G or T, such as 512M, 120G or 1T, at most 64T'

/** Returns bytes; undefined for an invalid size. */
export function parseDiskSize(text: string): number | undefined {
  const [, digits = '', unit = ''] = /^([1-9]\d{0,8})([MGT])$/i.exec(text) ?? []
  const bytes = Number(digits) * (bytesOf[unit.toUpperCase()] ?? 0)
  return bytes > 0 && bytes <= maxDiskBytes ? bytes : undefined
}

/** The inverse of `parseDiskSize`, in the largest exact unit: `90G`. */
export function diskSize(bytes: number): string {
  const unit = units.toReversed().find((each) => bytes % (bytesOf[each] ?? 1) === 0)
  if (bytes === 0 || unit === undefined) return roughSize(bytes)
  return `${bytes / (bytesOf[unit] ?? 1)}${unit}`
}

/** A rounded size, as in records: `412M`, `1.2G`. */
export function roughSize(bytes: number): string {
  let value = bytes
  let step = 0
  for (; value >= 1_000 && step < steps.length - 1; step++) value /= 1_024
  return `${step > 0 && value < 9.95 ? value.toFixed(1) : Math.round(value)}${steps[step]}`
}
