// Connects standard input and output with a stream until either ends. A lost connection looks like an ended one, which the
// protocol on top has to detect.
import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import type { Host } from '../../../host.ts'

export async function splice({ stdin, stdout }: Pick<Host, 'stdin' | 'stdout'>, stream: Duplex): Promise<void> {
  const ended = new AbortController()
  const send = async (): Promise<void> => {
    for await (const chunk of stdin.chunks(ended.signal)) {
      if (!stream.write(chunk)) await once(stream, 'drain', { signal: ended.signal })
    }
    stream.end()
  }
  const sending = send().catch(() => undefined)
  try {
    for await (const chunk of stream) {
      stdout.write(chunk as Uint8Array)
      await stdout.flush()
    }
  } catch (error) {
    // Reports errors of standard output, but not of the connection.
    if (!stream.errored) throw error
  } finally {
    ended.abort()
    await sending
    stream.destroy()
  }
}
