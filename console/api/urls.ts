// URLs of the console and the API, derived from the address of the page so that the console works behind any prefix.

/** Ends in `/console/`: the server writes the base element into the page. */
export const consoleUrl = new URL('.', document.baseURI)
/** The prefix of all API paths, without a trailing slash. */
export const serviceUrl = new URL('..', consoleUrl).href.replace(/\/$/, '')
/** The base path for the router, without a trailing slash. */
export const routerBase = consoleUrl.pathname.replace(/\/$/, '')

export const socketUrl = (path: string): string => serviceUrl.replace(/^http/, 'ws') + path
