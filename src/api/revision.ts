// Headers for reading your own writes from several servers that share a store.

/**
 * In responses: the revision up to which the response is complete. A client sends it with its next request, and the
 * response to that is complete up to at least this revision, whichever server answers.
 */
export const revisionHeader = 'svc3-revision'

/** In responses while the store is unreachable: the age in seconds of the latest data that any server has. */
export const readAgeHeader = 'svc3-read-age'
