// Addresses that only one test uses: a port there stays free while no server listens on it.
import { randomInt } from 'node:crypto'

/**
 * For servers that return to the same port: another process could get it at 127.0.0.1. The address has the same length, so
 * that tables keep their widths.
 */
export const ownAddress = (): string => `127.${randomInt(2, 10)}.${randomInt(0, 10)}.${randomInt(1, 10)}`
