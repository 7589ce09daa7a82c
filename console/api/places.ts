// Where things are: everything follows from the address of the page, so that the console works below any prefix.

/** Ends in `/console/`: the server writes it into the page. */
export const consoleUrl = new URL('.', document.baseURI)
/** What the paths of the API are appended to; without a slash at its end. */
export const serviceUrl = new URL('..', consoleUrl).href.replace(/\/$/, '')
/** For the router: the path of the console without its last slash. */
export const routerBase = consoleUrl.pathname.replace(/\/$/, '')

/** A path of the API as a WebSocket address. */
export const socketUrl = (path: string): string => serviceUrl.replace(/^http/, 'ws') + path
