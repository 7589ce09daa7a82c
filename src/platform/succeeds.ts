// Whether work succeeds, for callers that need neither its result nor the reason of a failure.
export const succeeds = (work: Promise<unknown>): Promise<boolean> =>
  work.then(
    () => true,
    () => false,
  )
