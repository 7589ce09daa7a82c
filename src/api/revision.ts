// Read your own writes over several servers that share a store.

/**
 * In answers of such servers: everything up to this revision is in it. Sent with the next request, to whichever of them,
 * it is the least that the next answer has.
 */
export const revisionHeader = 'svc3-revision'
