// Asks for a pull and, when somebody wants to wait, shows how far the service is with it.
import type { Image } from '../../../api/images.ts'
import type { Client } from '../../../client/client.ts'
import { watch } from '../../../client/watch.ts'
import type { Options } from '../../command.ts'
import type { Context } from '../../context.ts'
import { startMeter } from '../../transfer.ts'
import { Failure, Interrupted } from '../../usage.ts'
import type { ImageKind } from '../images/kind.ts'
import { checkName } from '../images/options.ts'
import type { Remote } from './kind.ts'

export const waiting = {
  wait: { type: 'boolean', description: 'Until it is there, showing how far it is' },
} as const satisfies Options

export interface PullChoice {
  readonly remote: string
  readonly name: string | undefined
  readonly description: string | undefined
  readonly wait: boolean
}

export async function pullItem(context: Context, remote: Remote, choice: PullChoice): Promise<number> {
  const { host, signal } = context
  const { kind } = remote
  const { name, description } = choice
  if (name !== undefined) checkName(name, kind.word)
  const { client, namespace } = await context.connect()
  const body = { ...(name !== undefined && { name }), ...(description !== undefined && { description }) }
  const begun = await remote.pull(client, { namespace, remote: choice.remote, signal }, body)
  const word = kind.word === 'iso' ? 'ISO' : 'Image'
  const look = `${host.calledAs} ${kind.word} list ${begun.name}`
  if (!choice.wait) {
    await context.done(`${word} ${begun.name} is being pulled; "${look}" shows how far it is.`, begun)
    return 0
  }
  const ended = await follow(context, client, kind, namespace, begun).catch((error: unknown) => {
    if (signal.aborted) throw new Interrupted('interrupted', `the pull goes on; "${look}" shows how far it is`)
    throw error
  })
  if (ended?.state !== 'Ready')
    throw new Failure(
      `${kind.word} "${begun.name}" ${ended ? `was not pulled: ${ended.errorMessage ?? 'it failed'}` : 'was deleted'}`,
      ended ? `"${host.calledAs} ${kind.word} delete ${begun.name}" makes its name free again` : 'pull it again',
    )
  await context.done(`${word} ${begun.name} is pulled.`, ended)
  return 0
}

/** Its last state; undefined when it was deleted. */
async function follow(
  context: Context,
  client: Client,
  kind: ImageKind,
  namespace: string,
  begun: Image,
): Promise<Image | undefined> {
  const over = new AbortController()
  const signal = AbortSignal.any([context.signal, over.signal])
  const meter = startMeter(context, `${kind.word} ${begun.name}`, 0)
  const input = { params: { namespace }, query: { fieldSelector: `name=${begun.name}` } }
  let isThere = false
  try {
    for await (const { type, object } of watch(client, kind.list, input as never, { signal })) {
      // What is there comes first: had it been there, it would have been told by now.
      if (type === 'DELETED' || (type === 'BOOKMARK' && !isThere)) return undefined
      if (type === 'BOOKMARK') continue
      isThere = true
      const image = object as Image
      if (image.state !== 'Updating') return image
      if (image.progress) meter.show({ text: 'being pulled', percent: image.progress.percent })
    }
    context.signal.throwIfAborted()
    return undefined
  } finally {
    over.abort()
    meter.end()
  }
}
