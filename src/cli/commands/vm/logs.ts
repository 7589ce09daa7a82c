// svc3 vm logs
import { getVmLogs } from '../../../api/vms/vms.ts'
import { boundedDelay, isTransient, type RetryPolicy, wait } from '../../../rules/retry.ts'
import { type Context, defineCommand, namespaced, type Session } from '../../command.ts'
import { Failure } from '../../line/usage.ts'
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
  async run(context, { args, options: { follow, tail } }) {
    const session = await context.connect()
    const shown = context.host.stdout.isTerminal ? printable() : (chunk: Uint8Array) => chunk
    try {
      if (follow) await followLogs(context, session, { vm: args.vm, tail, shown })
      else {
        const bytes = await readLogs(context, session, {
          vm: args.vm,
          query: tail === undefined ? {} : { tail },
          shown,
        })
        if (bytes === 0 && tail !== 0) context.note(`No output yet. ${screenLine(args.vm, session)} shows the screen`)
      }
      return 0
    } catch (error) {
      if (follow && context.signal.aborted) return 130
      throw error
    }
  },
})

type Shown = (chunk: Uint8Array) => string | Uint8Array

interface Read {
  readonly vm: string
  readonly query: { readonly follow?: true; readonly tail?: number }
  readonly shown: Shown
  readonly onOpen?: () => void
}

const screenLine = (vm: string, { sameTargetFlags }: Session): string => `svc3 vm vnc ${vm}${sameTargetFlags}`

/** How many bytes there were. */
async function readLogs({ host, signal }: Context, { client, namespace }: Session, read: Read): Promise<number> {
  const params = { namespace, vm: read.vm }
  const { body } = await client.open(getVmLogs, { params, query: read.query, signal })
  read.onOpen?.()
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    host.stdout.write(read.shown(chunk))
    await host.stdout.flush()
  }
  return bytes
}

const retry: RetryPolicy = { attempts: 12, firstDelayMs: 200, maxDelayMs: 10_000, maxRetryAfterMs: 60_000 }
/** A connection that lasted this long was a good one. */
const goodMs = 5_000

/** The stream of a VM has no end of its own: one that ends was lost. */
async function followLogs(
  context: Context,
  session: Session,
  { vm, tail, shown }: { readonly vm: string; readonly tail: number | undefined; readonly shown: Shown },
): Promise<void> {
  const { signal } = context
  let hasOpened = false
  let isLost = false
  const shownAfterLoss: Shown = (chunk) => {
    // Not when it opens: a stream that keeps ending would say so every time.
    if (isLost) context.note('Reconnected; output in between may be missing')
    isLost = false
    return shown(chunk)
  }
  const onOpen = (): void => {
    hasOpened = true
  }
  for (let attempt = 1; ; attempt++) {
    const startMs = performance.now()
    let failure: unknown
    try {
      const from = hasOpened ? { tail: 0 } : tail === undefined ? {} : { tail }
      await readLogs(context, session, { vm, query: { follow: true, ...from }, shown: shownAfterLoss, onOpen })
    } catch (error) {
      if (signal.aborted || !isTransient(error) || !hasOpened) throw error
      failure = error
    }
    signal.throwIfAborted()
    if (performance.now() - startMs > goodMs) attempt = 1
    if (attempt >= retry.attempts)
      throw (
        failure ??
        new Failure(
          `The log stream of VM ${vm} keeps ending`,
          `Run svc3 vm show ${vm}${session.sameTargetFlags} to see its state`,
        )
      )
    if (!isLost) context.note(lostText)
    isLost = true
    await wait(boundedDelay(failure, attempt, retry), signal)
  }
}

/** On a terminal, what a guest writes must not move the cursor or change titles; a pipe gets every byte. */
function printable(): Shown {
  const decoder = new TextDecoder()
  return (chunk) =>
    decoder
      .decode(chunk, { stream: true })
      .replaceAll('\r', '')
      .split('\n')
      .map((line) => visible(line.replaceAll('\t', '    ')))
      .join('\n')
}
