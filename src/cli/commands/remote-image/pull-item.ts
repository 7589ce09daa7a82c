// Starts a pull and, with --wait, shows its progress.
import type { Image } from '../../../api/images/images.ts'
import type { Client } from '../../../client/client.ts'
import { watch } from '../../../client/watch.ts'
import { type Context, type Options, waitingLonger } from '../../command.ts'
import { Failure, Interrupted, TimedOut } from '../../line/usage.ts'
import { startProgress, stepOf } from '../../output/progress.ts'
import type { ImageKind } from '../image/kind.ts'
import { checkName } from '../image/options.ts'
import type { Remote } from './kind.ts'

export const waiting = {
  wait: { type: 'boolean', description: 'Wait until pulled, and show the progress' },
  ...waitingLonger,
} as const satisfies Options

interface PullChoice {
  readonly remote: string
  readonly name: string | undefined
  readonly description: string | undefined
  readonly wait: boolean
  readonly timeoutMs: number
}

export async function pullItem(context: Context, remote: Remote, choice: PullChoice): Promise<number> {
  const { signal } = context
  const { kind } = remote
  const { name, description } = choice
  if (name !== undefined) checkName(name, kind.word)
  const { client, namespace, again } = await context.connect({ attempts: 1 })
  const body = { ...(name !== undefined && { name }), ...(description !== undefined && { description }) }
  const begun = await remote.pull(context, client, { namespace, remote: choice.remote, again }, body, choice.timeoutMs)
  const word = kind.word === 'iso' ? 'ISO' : 'Image'
  const look = `svc3 ${kind.word} list ${begun.name}${again}`
  if (!choice.wait) {
    await context.done(`Pulling ${kind.word} ${begun.name}. Run ${look} to see the progress.`, begun)
    return 0
  }
  const late = AbortSignal.timeout(choice.timeoutMs)
  const ended = await follow(context, { client, kind, namespace, begun, late }).catch((error: unknown) => {
    if (signal.aborted) throw new Interrupted('Interrupted', `The pull continues. Run ${look} to see the progress`)
    if (late.aborted)
      throw new TimedOut(
        `${word} ${begun.name} is not pulled yet`,
        `The pull continues. Run ${look} to see the progress`,
      )
    throw error
  })
  if (ended?.state !== 'Ready')
    throw new Failure(
      `${word} ${begun.name} ${ended ? `could not be pulled: ${ended.errorMessage ?? 'failed'}` : 'was deleted'}`,
      ended ? `Run svc3 ${kind.word} delete ${begun.name}${again} to free its name` : 'Pull it again',
    )
  await context.done(`${word} ${begun.name} pulled.`, ended)
  if (ended.warning !== undefined) context.note(ended.warning)
  return 0
}

interface Pulled {
  readonly client: Client
  readonly kind: ImageKind
  readonly namespace: string
  readonly begun: Image
  readonly late: AbortSignal
}

/** Its last state; undefined when it was deleted. */
async function follow(context: Context, { client, kind, namespace, begun, late }: Pulled): Promise<Image | undefined> {
  const over = new AbortController()
  const signal = AbortSignal.any([context.signal, late, over.signal])
  const progress = startProgress(context, `${kind.word} ${begun.name}`)
  const input = { params: { namespace }, query: { fieldSelector: `name=${begun.name}` } }
  let isThere = false
  try {
    for await (const { type, object } of watch(client, kind.list, input as never, { signal })) {
      // A watch sends what exists first: had it existed, it would have come by now.
      if (type === 'DELETED' || (type === 'BOOKMARK' && !isThere)) return undefined
      if (type === 'BOOKMARK') continue
      isThere = true
      const image = object as Image
      if (image.state !== 'Updating') return image
      if (image.progress) progress.show(stepOf(image.errorMessage ?? 'being pulled', image.progress))
    }
    signal.throwIfAborted()
    return undefined
  } finally {
    over.abort()
    progress.end()
  }
}
