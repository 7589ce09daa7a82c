// How V8 collects the garbage of a server: what it does by itself is for programs that do not run for months. Set at run time: a
// Node that has no such flag any more says so, and goes on.

export const heapFlags: readonly string[] = [
  // Garbage may grow to three times the live heap after a busy hour, and the memory is kept.
  '--heap-growing-percent=80',
  // What lived long for a moment is made old from then on, and keeps alive what it points to.
  '--no-allocation-site-pretenuring',
  // Several threads collect the little that is new, and wait for each other.
  '--no-parallel-scavenge',
]
