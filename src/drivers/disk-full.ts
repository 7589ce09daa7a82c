// What a capture that failed because the disk of its host is full tells people.

/** `error` in plain words where that was its reason; QEMU says so in its own way. */
export function explainFullDisk(error: unknown): unknown {
  const isFull = error instanceof Error && /ENOSPC|EDQUOT|No space left|Disk quota/i.test(error.message)
  if (!isFull) return error
  return new Error("the host's disk is full; the VM was not captured and keeps running. Free space and try again")
}
