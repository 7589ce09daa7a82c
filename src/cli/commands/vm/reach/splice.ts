// Standard input and output, joined with a connection until either ends. One that breaks looks like one that ends: whoever
// speaks through it knows which it was.
import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import type { Host } from '../../../host.ts'

export async function splice({ stdin, stdout }: Pick<Host, 'stdin' | 'stdout'>, stream: Duplex): Promise<void> {
  const over = new AbortController()
  const send = async (): Promise<void> => {
    for await (const chunk of stdin.chunks(over.signal)) {
      if (!stream.write(chunk)) await once(stream, 'drain', { signal: over.signal })
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
    // What cannot be written to standard output is told; what the other side did not take is not.
    if (!stream.errored) throw error
  } finally {
    over.abort()
    await sending
    stream.destroy()
  }
}
