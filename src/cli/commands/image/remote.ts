// svc3 remote-image and remote-iso
import type { RemoteItem } from '../../../api/images/image-operations.ts'
import type { Image } from '../../../api/images/images.ts'
import { listRemoteImages, pullRemoteImage } from '../../../api/images/remote-images.ts'
import { listRemoteIsos, pullRemoteIso } from '../../../api/images/remote-isos.ts'
import type { CallInput } from '../../../client/client.ts'
import { defined } from '../../../platform/defined.ts'
import { awaitChange } from '../../await-change.ts'
import { type Command, defineCommand, millisecondsOf, namespaced, printed, waitingLonger } from '../../command.ts'
import { followRecord } from '../../follow-record.ts'
import { Failure } from '../../line/usage.ts'
import { type OutputColumn, sizeCell } from '../../output/output.ts'
import { stepOf } from '../../output/progress.ts'
import { printChosen } from '../../record-commands.ts'
import { type ImageKind, imageKind, isoKind } from './kind.ts'
import { checkName, described } from './options.ts'

interface Remote {
  readonly kind: ImageKind
  readonly list: typeof listRemoteImages | typeof listRemoteIsos
  readonly pull: typeof pullRemoteImage | typeof pullRemoteIso
  readonly remoteText: string
  readonly pullExamples: Command['examples']
}

const columns: readonly OutputColumn<RemoteItem>[] = [
  { header: 'NAME', cell: ({ name }) => name },
  { header: 'SIZE', cell: ({ size }) => sizeCell(size) },
  { header: 'TYPE', cell: ({ type }) => type },
]

const listCommand = ({ kind, list }: Remote): Command =>
  defineCommand({
    description: 'Lists the content of the remotes in the server settings.',
    arguments: { names: { value: 'NAME', description: 'only these', repeatable: true } },
    options: { ...namespaced, ...printed },
    examples: [{ line: `svc3 remote-${kind.word} list`, does: 'List what can be pulled' }],
    async run(context, { args: { names } }) {
      const { client, namespace } = await context.connect()
      const { items, unavailable = [] } = await client.call(list, { params: { namespace }, signal: context.signal })
      for (const { message } of unavailable) context.note(message)
      return printChosen(context, {
        kind: `remote-${kind.nouns}`,
        items,
        nameOf: ({ name }) => name,
        wanted: names,
        columns,
        none: 'No remotes configured, or they are empty. Configure remotes in config.json of the server.',
      })
    },
  })

const pullCommand = ({ kind, pull, remoteText, pullExamples }: Remote): Command =>
  defineCommand({
    description: `The server pulls the ${kind.noun} in the background and resumes after a restart. Delete the ${kind.noun} to cancel.`,
    arguments: {
      remote: { value: 'REMOTE', description: remoteText, required: true },
      name: { value: 'NAME', description: 'name in the cluster (default: the same)' },
    },
    options: {
      wait: { type: 'boolean', description: 'Wait until pulled, and show the progress' },
      ...waitingLonger,
      ...described,
      ...namespaced,
      ...printed,
    },
    examples: pullExamples,
    async run(context, { args: { remote, name }, options: { description, wait, timeout } }) {
      if (name !== undefined) checkName(name, kind.word)
      const timeoutMs = millisecondsOf(timeout)
      const session = await context.connect({ attempts: 1 })
      const { client, namespace, sameTargetFlags } = session
      const body = defined({ name, description })
      const next = `To follow it: svc3 ${kind.word} list${sameTargetFlags}`
      // The parameter is `remoteimage` or `remoteiso`.
      const input = { params: { namespace, [`remote${kind.word}`]: remote }, body } as unknown as CallInput<typeof pull>
      const begun = await awaitChange(context, client, pull, input, { timeoutMs, what: 'the pull', next })
      const look = `svc3 ${kind.word} list ${begun.name}${sameTargetFlags}`
      if (!wait) {
        await context.done(`Pulling ${kind.word} ${begun.name}. Run ${look} to see the progress.`, begun)
        return 0
      }
      const ended = await followRecord(context, session, kind.list, begun.name, {
        label: `${kind.word} ${begun.name}`,
        isDone: ({ state }: Image) => state !== 'Updating',
        step: ({ progress, errorMessage }: Image) => progress && stepOf(errorMessage ?? 'being pulled', progress),
        timeout: { ms: timeoutMs, message: `${kind.label} ${begun.name} is not pulled yet` },
        what: 'the pull',
        next: `To follow it: ${look}`,
      })
      if (ended?.state !== 'Ready')
        throw new Failure(
          `${kind.label} ${begun.name} ${ended ? `could not be pulled: ${ended.errorMessage ?? 'failed'}` : 'was deleted'}`,
          ended ? `Run svc3 ${kind.word} delete ${begun.name}${sameTargetFlags} to free its name` : 'Pull it again',
        )
      await context.done(`${kind.label} ${begun.name} pulled.`, ended)
      if ('warning' in ended && ended.warning !== undefined) context.note(ended.warning)
      return 0
    },
  })

const commandsOf = (remote: Remote) => ({ list: listCommand(remote), pull: pullCommand(remote) })

export const imageCommands = commandsOf({
  kind: imageKind,
  list: listRemoteImages,
  pull: pullRemoteImage,
  remoteText: 'name in remote-image list, or an OCI reference: HOST/REPOSITORY/IMAGE[:TAG]',
  pullExamples: [
    { line: 'svc3 remote-image pull sonoma', does: 'Pull under the same name' },
    { line: 'svc3 remote-image pull ghcr.io/team/sonoma:v1', does: 'From a registry' },
    { line: 'svc3 remote-image pull sonoma mine --wait', does: 'Pull under another name and wait' },
  ],
})

export const isoCommands = commandsOf({
  kind: isoKind,
  list: listRemoteIsos,
  pull: pullRemoteIso,
  remoteText: 'name in remote-iso list',
  pullExamples: [
    { line: 'svc3 remote-iso pull ventura.iso', does: 'Pull under the same name' },
    { line: 'svc3 remote-iso pull ventura.iso mine --wait', does: 'Pull under another name and wait' },
  ],
})
