// Read your own writes over several servers that share a store.

/**
 * In answers of such servers: everything up to this revision is in it. Sent with the next request, to whichever of them,
 * it is the least that the next answer has.
 */
export const revisionHeader = 'svc3-revision'

/** In answers while the store does not answer: what is in them may be this many seconds old, and is nowhere newer. */
export const readAgeHeader = 'svc3-read-age'
