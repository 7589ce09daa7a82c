// Addresses of this machine alone, and of one test alone: a port there stays free while nobody listens on it.
import { randomInt } from 'node:crypto'

/**
 * For servers that come back at the same port: what the system gives out by itself is at 127.0.0.1, and might have got it
 * meanwhile. As long as that address, so that tables keep their widths.
 */
export const ownAddress = (): string => `127.${randomInt(2, 10)}.${randomInt(0, 10)}.${randomInt(1, 10)}`
