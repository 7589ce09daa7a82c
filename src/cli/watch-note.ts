// What people are told of a watch whose connection is lost.
import type { Context } from './command.ts'

export const lostText = 'Connection lost; reconnecting…'

/** Says so once, until there is a connection again. */
export function noteConnection({ note }: Context): (isConnected: boolean) => void {
  let wasConnected = true
  return (isConnected) => {
    if (wasConnected && !isConnected) note(lostText)
    wasConnected = isConnected
  }
}
