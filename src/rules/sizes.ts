// Amounts of memory and disk, as the API writes them (docs/spec.md R48) and as people read them; and counts.

/** `1 file`, `2 files`. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

/** `4.80Gi`, as records of VMs have it. */
export const gibibytes = (mebibytes: number): string => `${(mebibytes / 1_024).toFixed(2)}Gi`

/** `11.20G`, as records of nodes have it. */
export const nodeMemory = (mebibytes: number): string => `${(mebibytes / 1_024).toFixed(2)}G`

const steps = ['', 'K', 'M', 'G', 'T', 'P'] as const

/** `10.6 GiB`, `512 MiB`, `90 B`: an amount to read, in sentences and on a terminal. */
export function sizeText(bytes: number): string {
  let value = bytes
  let step = 0
  for (; value >= 1_000 && step < steps.length - 1; step++) value /= 1_024
  const digits = step > 0 && value < 99.95 ? Number(value.toFixed(1)) : Math.round(value)
  return `${digits} ${steps[step]}${step > 0 ? 'iB' : 'B'}`
}

/** The same of an amount in a record: `4.80Gi`, `11.20G`, `412M`. What is none, such as `auto`, stays as it is. */
export function longSize(text: string): string {
  const [, digits, prefix = ''] = /^([\d.]+)([KMGTP]?)i?$/.exec(text) ?? []
  return digits === undefined
    ? text
    : sizeText(Number(digits) * 1_024 ** steps.indexOf(prefix as (typeof steps)[number]))
}

/** The same of memory. */
export const memorySize = (mebibytes: number): string => sizeText(mebibytes * 2 ** 20)

/** A VM without a size of its own gets its cores' share of 80 % of the node's memory. */
export const automaticMemoryMiB = (cpu: number, node: { readonly cpu: number; readonly memoryMiB: number }): number =>
  Math.max(128, Math.floor((node.memoryMiB * 0.8 * Math.min(cpu, node.cpu)) / node.cpu))

/** GiB with one decimal, as somebody asks for it; 0 is automatic. */
export const askedMemoryMiB = (gibi: number): number => Math.round(gibi * 1_024)

const units = ['M', 'G', 'T'] as const
const bytesOf: Readonly<Record<string, number>> = { M: 2 ** 20, G: 2 ** 30, T: 2 ** 40 }
/** No disk is larger: a declared petabyte is refused before anything is allocated. */
export const largestDiskBytes = 64 * 2 ** 40
export const diskSizeRule = 'a whole number with M, G or T, such as 512M, 120G or 1T, at most 64T'

/** `120G` → bytes; undefined when it is no size for a disk. */
export function parseDiskSize(text: string): number | undefined {
  const [, digits = '', unit = ''] = /^([1-9]\d{0,8})([MGT])$/i.exec(text) ?? []
  const bytes = Number(digits) * (bytesOf[unit.toUpperCase()] ?? 0)
  return bytes > 0 && bytes <= largestDiskBytes ? bytes : undefined
}

/** A size of a disk as it is asked for: `90G`. What is no whole number of GiB, in the largest unit that it is one of. */
export function diskSize(bytes: number): string {
  const unit = units.toReversed().find((each) => bytes % (bytesOf[each] ?? 1) === 0)
  if (bytes === 0 || unit === undefined) return roughSize(bytes)
  return `${bytes / (bytesOf[unit] ?? 1)}${unit}`
}

/** `412M`, `1.2G`: what something takes, as records have it. */
export function roughSize(bytes: number): string {
  let value = bytes
  let step = 0
  for (; value >= 1_000 && step < steps.length - 1; step++) value /= 1_024
  return `${step > 0 && value < 9.95 ? value.toFixed(1) : Math.round(value)}${steps[step]}`
}
