// Tells the user that the connection of a watch was lost.
import type { Context } from './command.ts'

export const lostText = 'Connection lost; reconnecting…'

/** Prints the note once per lost connection. */
export function noteConnection({ note }: Context): (isConnected: boolean) => void {
  let wasConnected = true
  return (isConnected) => {
    if (wasConnected && !isConnected) note(lostText)
    wasConnected = isConnected
  }
}
