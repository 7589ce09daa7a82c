// Explains a capture that failed because the host's disk is full.

export function explainFullDisk(error: unknown): unknown {
  const isFull = error instanceof Error && /ENOSPC|EDQUOT|No space left|Disk quota/i.test(error.message)
  if (!isFull) return error
  return new Error("the host's disk is full; the VM was not captured and keeps running. Free space and try again")
}
