// Starts a pull and, with --wait, shows its progress.
import type { Image } from '../../../api/images/images.ts'
import { type Context, type Options, waitingLonger } from '../../command.ts'
import { followRecord } from '../../follow-record.ts'
import { Failure } from '../../line/usage.ts'
import { stepOf } from '../../output/progress.ts'
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
  const { kind } = remote
  const { name, description } = choice
  if (name !== undefined) checkName(name, kind.word)
  const session = await context.connect({ attempts: 1 })
  const { client, namespace, sameTargetFlags } = session
  const body = { ...(name !== undefined && { name }), ...(description !== undefined && { description }) }
  const begun = await remote.pull(
    context,
    client,
    { namespace, remote: choice.remote, sameTargetFlags },
    body,
    choice.timeoutMs,
  )
  const word = kind.word === 'iso' ? 'ISO' : 'Image'
  const look = `svc3 ${kind.word} list ${begun.name}${sameTargetFlags}`
  if (!choice.wait) {
    await context.done(`Pulling ${kind.word} ${begun.name}. Run ${look} to see the progress.`, begun)
    return 0
  }
  const ended = (await followRecord(context, session, kind.list, begun.name, {
    label: `${kind.word} ${begun.name}`,
    isDone: ({ state }: Image) => state !== 'Updating',
    step: ({ progress, errorMessage }: Image) => progress && stepOf(errorMessage ?? 'being pulled', progress),
    timeout: { ms: choice.timeoutMs, message: `${word} ${begun.name} is not pulled yet` },
    what: 'the pull',
    next: `To follow it: ${look}`,
  })) as Image | undefined
  if (ended?.state !== 'Ready')
    throw new Failure(
      `${word} ${begun.name} ${ended ? `could not be pulled: ${ended.errorMessage ?? 'failed'}` : 'was deleted'}`,
      ended ? `Run svc3 ${kind.word} delete ${begun.name}${sameTargetFlags} to free its name` : 'Pull it again',
    )
  await context.done(`${word} ${begun.name} pulled.`, ended)
  if (ended.warning !== undefined) context.note(ended.warning)
  return 0
}
