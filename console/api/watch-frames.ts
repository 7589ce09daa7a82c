// What goes over the one WebSocket that carries every watch of a page: pure, so that it is tested without one.
import { isObject, parseJson } from '../../src/client/answer.ts'

/** A change as the line that the API's own watch would have sent. */
export interface Frame {
  readonly watch: number
  readonly line: string
  /** The watch is over: the line says why. */
  readonly isLast: boolean
}

export const askFor = (watch: number, url: string): string => {
  const { pathname, searchParams } = new URL(url, 'http://service')
  searchParams.delete('watch')
  return JSON.stringify({ watch, path: pathname, query: Object.fromEntries(searchParams) })
}

export const giveUp = (watch: number): string => JSON.stringify({ unwatch: watch })

/** One message has one change or an array of them. What is neither is left out. */
export function framesOf(message: string): Frame[] {
  const value = parseJson(message)
  const events = Array.isArray(value) ? value : [value]
  return events.flatMap((event): Frame[] => {
    if (!isObject(event) || typeof event.watch !== 'number' || typeof event.type !== 'string') return []
    const { watch, type, object } = event
    return [{ watch, line: `${JSON.stringify({ type, object })}\n`, isLast: type === 'ERROR' }]
  })
}
