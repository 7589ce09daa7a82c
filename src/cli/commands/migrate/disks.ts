// Images and ISOs of a migration. Disks of Intel are downloaded and uploaded. Orka has no download for images of Apple silicon: a VM
// at the source pushes them to a registry, from which they are pulled.
import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { getImage } from '../../../api/images/images.ts'
import { pullRemoteImage } from '../../../api/images/remote-images.ts'
import { listPushJobs, pushVm } from '../../../api/vms/push-jobs.ts'
import { deleteVm, deployVm, listVms } from '../../../api/vms/vms.ts'
import type { Client } from '../../../client/client.ts'
import { mayBeThere } from '../../../platform/files.ts'
import { wait } from '../../../platform/retry.ts'
import { Failure } from '../../line/usage.ts'
import { fetchFile } from '../image/download-file.ts'
import { type ImageKind, imageKind, isoKind } from '../image/kind.ts'
import { sendFile } from '../image/upload-file.ts'
import { type Item, type Kind, type Run, sameIf } from './plan.ts'
import type { Fields } from './source.ts'

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 12)
/** Changes with the content. The source has neither checksums nor ETags. */
const versionOf = ({ size, lastUpdatedTimestamp }: Fields): string => hashOf(`${size} ${lastUpdatedTimestamp}`)

export function diskKind(word: 'image' | 'iso'): Kind {
  const kind = word === 'image' ? imageKind : isoKind
  return {
    kind: word,
    isClusterWide: true,
    list: kind.list,
    fits: (record, file) =>
      'size' in record && (word === 'iso') === (file.startsWith('iso') || /\.iso$/.test(`${record.name}`)),
    wanted: ({ description = '', state = 'Ready', type = 'amd64', os = 'macos', ...record }) => ({
      description,
      version: versionOf(record),
      ...(word === 'image' ? { type, os } : { type: 'amd64' }),
      ...(state !== 'Ready' && { refused: `It is ${state} at the source` }),
    }),
    compare(found, { wanted }, { source, registry }) {
      const differs = (reason: string) => sameIf({}, false, reason)
      if (found?.state === 'Failed') return differs(`Failed here, delete it and try again: ${found.errorMessage}`)
      if (found && found.type !== wanted.type) return differs(`Another one of that name is here, for ${found.type}`)
      if (found?.state === 'Ready')
        return sameIf(['', found.description].includes(wanted.description as '') ? found : undefined, true)
      if (!source.client) return differs('Files have no disks: use the address of the cluster')
      if (wanted.type === 'amd64' || registry) return { result: 'to carry' }
      return differs('Apple silicon: add --registry HOST/REPOSITORY, to which a VM at the source pushes it')
    },
    async apply(run, item, found) {
      const params = { namespace: run.namespace, [kind.word]: item.name }
      const input = { params, body: { description: String(item.wanted.description) }, signal: run.context.signal }
      const { client = run.client } = run.source
      if (found?.state === 'Ready') await run.client.call(kind.describe, input as never)
      else if (item.wanted.type === 'arm64') return pushAndPull(run, client, item, found)
      else return carryDisk(run, client, kind, item)
      return undefined
    },
  }
}

/** Both halves resume: the download in its partial file, the upload from the offset that the server has. */
async function carryDisk({ context, folder, space, source }: Run, client: Client, kind: ImageKind, item: Item) {
  const { name, wanted } = item
  const { version = '', type = '', os, description } = wanted as Readonly<Record<string, string>>
  const file = path.join(folder, 'disks', `${kind.word}-${name}-${encodeURIComponent(version)}`)
  await fs.mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
  const from = { client, kind, namespace: space, image: { name }, signal: context.signal, format: 'raw' }
  if (!mayBeThere(file)) await fetchFile(context, from, file, version)
  const isSame = (record: Fields): boolean => record.name === name && versionOf(record) === version
  if (!(await source.list(kind.list, space)).some(isSame)) {
    await fs.rm(file)
    throw new Failure('It changed at the source: make a new plan', '')
  }
  const { warning } = await sendFile(context, kind, { file, name, description, type, os: os as 'macos' })
  await fs.rm(file)
  return warning
}

const pollMs = 2_000
const deployMinutes = 20

async function until<T>(isDone: (value: T) => boolean, read: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    const value = await read()
    if (isDone(value)) return value
    await wait(pollMs, signal)
  }
}

async function pushAndPull(run: Run, source: Client, { name, wanted }: Item, found?: Fields): Promise<string> {
  const { client, namespace, registry } = run
  const { signal } = run.context
  const remoteimage = `${registry}/${name}:migrated`
  // A pull that a killed run has started continues.
  if (!found) {
    await pushAtSource(run, source, name, remoteimage)
    const body = { name, description: String(wanted.description) }
    await client.call(pullRemoteImage, { params: { namespace, remoteimage }, body, signal })
  }
  const read = () => client.call(getImage, { params: { namespace, image: name }, signal })
  const { state, errorMessage } = await until((image) => image.state !== 'Updating', read, signal)
  if (state === 'Ready') return `Pulled from ${remoteimage}`
  throw new Failure(`It is at ${remoteimage}, but was not pulled: ${errorMessage}`, '')
}

/** The VM has the same name in every run, so that a run after a kill finds it. */
async function pushAtSource({ space, context }: Run, client: Client, image: string, imageReference: string) {
  const vm = `migrate-${hashOf(image)}`
  const input = { params: { namespace: space, vm }, signal: context.signal }
  context.note(`image ${image}: VM ${vm} at the source pushes it to ${imageReference}`)
  const timeout = { timeoutMs: (deployMinutes + 1) * 60_000 }
  if (!(await client.listAll(listVms, input)).some(({ name }) => name === vm))
    await client.call(deployVm, { ...input, ...timeout, body: { name: vm, image, timeout: deployMinutes } })
  const jobs = async () => (await client.listAll(listPushJobs, input)).filter((job) => job.vm === vm)
  const earlier = (await jobs()).find(({ status }) => /Pending|Running|Succeeded/.test(status))?.name
  const name = earlier ?? (await client.call(pushVm, { ...input, body: { imageReference } })).jobName
  const read = async () => (await jobs()).find((job) => job.name === name)
  const job = await until((each) => !/Pending|Running/.test(each?.status ?? ''), read, context.signal)
  await client.call(deleteVm, input)
  const problem = job?.errorMessage ?? 'the job does not exist'
  if (job?.status !== 'Succeeded') throw new Failure(`The push failed at the source: ${problem}`, '')
}
