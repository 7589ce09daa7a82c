// svc3 vm logs
import { getVmLogs } from '../../../api/vms/vms.ts'
import { followLogs } from '../../../client/follow-logs.ts'
import { type Context, defineCommand, namespaced, type Session } from '../../command.ts'
import { visible } from '../../output/output.ts'
import { lostText } from '../../watch-note.ts'
import { vmArgument } from './parts/vm-argument.ts'

export const command = defineCommand({
  description: 'Output of the guest on its serial console: boot messages and what it prints there later.',
  arguments: vmArgument,
  options: {
    follow: { type: 'boolean', short: 'f', description: 'Follow new output until Ctrl-C' },
    tail: { type: 'integer', value: 'LINES', min: 0, max: 100_000, description: 'Number of lines from the end' },
    ...namespaced,
  },
  examples: [
    { line: 'svc3 vm logs demo', does: 'Show all output' },
    { line: 'svc3 vm logs demo --tail 20 --follow', does: 'Show the last lines and follow' },
  ],
  async run(context, { args: { vm }, options: { follow, tail } }) {
    const session = await context.connect()
    const { client, namespace } = session
    const { signal, note } = context
    const shown = context.host.stdout.isTerminal ? printable() : (chunk: Uint8Array) => chunk
    if (!follow) {
      const query = tail === undefined ? {} : { tail }
      const { body } = await client.open(getVmLogs, { params: { namespace, vm }, query, signal })
      if ((await print(context, body, shown)) === 0 && tail !== 0)
        note(`No output yet. ${screenLine(vm, session)} shows the screen`)
      return 0
    }
    let isLost = false
    const onLost = (): void => {
      if (!isLost) note(lostText)
      isLost = true
    }
    const shownAfterLoss: ChunkFormat = (chunk) => {
      // The note comes with the first output, because a stream that keeps ending would print it each time.
      if (isLost) note('Reconnected; output in between may be missing')
      isLost = false
      return shown(chunk)
    }
    try {
      await print(
        context,
        followLogs(client, { operation: getVmLogs, namespace, vm, tail, signal, onLost }),
        shownAfterLoss,
      )
      return 0
    } catch (error) {
      if (signal.aborted) return 130
      throw error
    }
  },
})

type ChunkFormat = (chunk: Uint8Array) => string | Uint8Array

const screenLine = (vm: string, { sameTargetFlags }: Session): string => `svc3 vm vnc ${vm}${sameTargetFlags}`

/** Returns the number of bytes. */
async function print({ host }: Context, pieces: AsyncIterable<Uint8Array>, shown: ChunkFormat): Promise<number> {
  let bytes = 0
  for await (const chunk of pieces) {
    bytes += chunk.length
    host.stdout.write(shown(chunk))
    await host.stdout.flush()
  }
  return bytes
}

/** Removes control sequences, so that the output of a guest cannot control the terminal. */
function printable(): ChunkFormat {
  const decoder = new TextDecoder()
  return (chunk) =>
    decoder
      .decode(chunk, { stream: true })
      .replaceAll('\r', '')
      .split('\n')
      .map((line) => visible(line.replaceAll('\t', '    ')))
      .join('\n')
}
