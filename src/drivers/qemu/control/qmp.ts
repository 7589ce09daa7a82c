// QMP, QEMU's machine protocol: JSON lines on a unix socket. One client at a time; a second one gets no greeting.
import net from 'node:net'

class QmpError extends Error {
  override readonly name = 'QmpError'
}

/** The error after QEMU sent something that is not QMP. The connection is closed. */
export class InvalidQmp extends QmpError {}

export interface Qmp {
  /** Throws QmpError if QEMU refuses, does not answer in time, or has exited. */
  execute(command: string, args?: Readonly<Record<string, unknown>>, timeoutMs?: number): Promise<unknown>
  /** Settles when the connection is closed by either side. */
  readonly closed: Promise<void>
  /** True if the event comes in time; false after the time, or if the connection closes. */
  waitFor(event: string, timeoutMs: number): Promise<boolean>
  close(): void
}

interface PendingCommand {
  resolve(value: unknown): void
  reject(error: Error): void
}

/** The fields that are used. A guest that has broken into QEMU may send other types, which have to be harmless. */
interface Message {
  readonly QMP?: unknown
  readonly id?: number
  readonly return?: unknown
  readonly error?: { readonly desc?: string }
  readonly event?: string
}

const longestLine = 1_048_576

/** Connects and negotiates. The greeting comes at once unless another client is connected. */
export async function connectQmp(
  path: string,
  timeoutMs: number,
  listener: (event: string) => void = () => undefined,
): Promise<Qmp> {
  const socket = net.connect(path)
  socket.unref()
  const waiting = new Map<number, PendingCommand>()
  const awaited = new Set<(event: string) => unknown>()
  let lastId = 0
  let buffered = ''
  const { promise: greeted, resolve: greet, reject: refuse } = Promise.withResolvers<void>()
  const { promise: closed, resolve: close } = Promise.withResolvers<void>()
  greeted.catch(() => undefined)

  const receive = (message: Message): void => {
    if (message.QMP !== undefined) greet()
    else if (message.event !== undefined) {
      for (const one of [...awaited]) one(message.event)
      listener(message.event)
    } else if (message.id !== undefined) {
      const one = waiting.get(message.id)
      waiting.delete(message.id)
      if (message.error) one?.reject(new QmpError(message.error.desc ?? 'refused without a reason'))
      else one?.resolve(message.return)
    }
  }
  socket.setEncoding('utf8')
  let failure: QmpError | undefined
  const giveUp = (problem: string): void => {
    failure = new InvalidQmp(problem)
    socket.destroy(failure)
  }
  socket.on('data', (text: string) => {
    const lines = (buffered + text).split('\n')
    buffered = lines.pop() ?? ''
    for (const line of lines) {
      if (failure || line.trim() === '') continue
      const message: Message | undefined = jsonObject(line)
      if (message) receive(message)
      else giveUp(`QEMU said what is not QMP: ${JSON.stringify(line.slice(0, 100))}`)
    }
    if (buffered.length > longestLine) giveUp('QEMU sent a line that is too long over its control socket')
  })
  socket.on('error', refuse)
  socket.on('close', () => {
    const gone = failure ?? new QmpError('QEMU closed its control socket')
    refuse(gone)
    for (const one of waiting.values()) one.reject(gone)
    waiting.clear()
    close()
  })

  const qmp: Qmp = {
    closed,
    execute: (command, args, limitMs = 10_000) =>
      new Promise((resolve, reject) => {
        if (socket.destroyed) return reject(failure ?? new QmpError('QEMU closed its control socket'))
        const id = ++lastId
        const timer = setTimeout(() => {
          waiting.delete(id)
          reject(new QmpError(`QEMU did not answer ${command} within ${limitMs} ms`))
        }, limitMs)
        const settled =
          <T>(settle: (value: T) => void) =>
          (value: T) => {
            clearTimeout(timer)
            settle(value)
          }
        waiting.set(id, { resolve: settled(resolve), reject: settled(reject) })
        socket.write(`${JSON.stringify({ execute: command, ...(args && { arguments: args }), id })}\n`)
      }),
    waitFor: (name, limitMs) =>
      new Promise((resolve) => {
        const settle = (isThere: boolean) => {
          clearTimeout(timer)
          awaited.delete(hear)
          resolve(isThere)
        }
        const hear = (event: string) => event === name && settle(true)
        const timer = setTimeout(() => settle(false), limitMs)
        awaited.add(hear)
        closed.then(() => settle(false))
      }),
    close: () => socket.destroy(),
  }
  const timer = setTimeout(() => refuse(new QmpError(`no greeting within ${timeoutMs} ms`)), timeoutMs)
  try {
    await greeted
    await qmp.execute('qmp_capabilities', undefined, timeoutMs)
    return qmp
  } catch (error) {
    socket.destroy()
    throw error
  } finally {
    clearTimeout(timer)
  }
}

/** Undefined for anything else than an object. */
export function jsonObject(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value = JSON.parse(line)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}
