// Amounts of memory and disk as the wire contract writes them.

/** `4.80Gi`, as records of VMs have it. */
export const gibibytes = (mebibytes: number): string => `${(mebibytes / 1_024).toFixed(2)}Gi`

/** `11.20G`, as records of nodes have it. */
export const nodeMemory = (mebibytes: number): string => `${(mebibytes / 1_024).toFixed(2)}G`

/** A VM without a size of its own gets its cores' share of 80 % of the node's memory. */
export const automaticMemoryMiB = (cpu: number, node: { readonly cpu: number; readonly memoryMiB: number }): number =>
  Math.max(128, Math.floor((node.memoryMiB * 0.8 * Math.min(cpu, node.cpu)) / node.cpu))

/** GiB with one decimal, as somebody asks for it; 0 is automatic. */
export const askedMemoryMiB = (gibi: number): number => Math.round(gibi * 1_024)
