// Images and ISOs of a migration. Disks of Intel are downloaded and uploaded. Orka has no download for images of Apple silicon: a VM
// at the source pushes them to a registry, from which they are pulled.
import { createHash } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { getImage } from '../../../api/images/images.ts'
import { pullRemoteImage } from '../../../api/images/remote-images.ts'
import type { JsonObject } from '../../../api/json.ts'
import { listPushJobs, pushVm } from '../../../api/vms/push-jobs.ts'
import { deleteVm, deployVm, listVms } from '../../../api/vms/vms.ts'
import type { Client } from '../../../client/client.ts'
import { mayBeThere } from '../../../platform/files.ts'
import { wait } from '../../../platform/retry.ts'
import { imageNameRule, isImageName } from '../../../rules/image-names.ts'
import { Failure } from '../../line/usage.ts'
import { visible } from '../../output/output.ts'
import { fetchFile } from '../image/download-file.ts'
import { type ImageKind, imageKind, isoKind } from '../image/kind.ts'
import { sendFile } from '../image/upload-file.ts'
import { alreadyThere, type Item, type Kind, notCarried, type Run, toCarry } from './plan.ts'

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 12)
/** Changes with the content. The source has neither checksums nor ETags. */
const versionOf = ({ size, lastUpdatedTimestamp }: JsonObject): string => hashOf(`${size} ${lastUpdatedTimestamp}`)

/** Only whole sizes in the same unit can be compared, and they may be rounded. */
const isOtherSize = (a: unknown, b: unknown): boolean =>
  /^\d+([MGT]),\d+\1$/.test(`${a},${b}`) && Math.abs(Number.parseInt(`${a}`, 10) - Number.parseInt(`${b}`, 10)) > 1

/** Answers that every image of Apple silicon would get. */
const sameForAll = /image of Orka|credential|authoriz|authentic|denied|forbidden/i

const partsOf = (folder: string, { word }: ImageKind, name: string) => path.join(folder, 'disks', `${word}-${name}`)

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
      size: record.size,
      ...(word === 'image' ? { type, os } : { type: 'amd64' }),
      ...(state !== 'Ready' && { refused: `It is ${state} at the source` }),
    }),
    compare(found, { name, wanted }, { folder, source, registry, isApplied }) {
      if (!isImageName(name)) return notCarried(`The name is not allowed here: ${imageNameRule}`)
      if (found?.state === 'Failed') return notCarried(`Failed here, delete it and try again: ${found.errorMessage}`)
      if (found && (found.type !== wanted.type || isOtherSize(found.size, wanted.size)))
        return notCarried(`Another ${word} of that name is here: ${found.type}, ${found.size}`)
      if (found?.state === 'Ready') return isApplied && mayBeThere(partsOf(folder, kind, name)) ? toCarry : alreadyThere
      if (!source.client) return notCarried('Files have no disks: use the address of the cluster')
      if (wanted.type === 'amd64' || registry) return toCarry
      return notCarried('Apple silicon: add --registry HOST/REPOSITORY, to which a VM at the source pushes it')
    },
    async apply(run, item, found) {
      const { client = run.client } = run.source
      const parts = partsOf(run.folder, kind, item.name)
      if (item.wanted.type !== 'arm64' || found?.state === 'Ready') {
        // A killed run may have left a disk that is here, or parts of earlier versions.
        const warning = found?.state === 'Ready' ? undefined : await carryDisk(run, client, kind, item, parts)
        await fs.rm(parts, { recursive: true, force: true })
        return warning
      }
      if (run.armProblem) throw new Failure(run.armProblem, '')
      return pushAndPull(run, client, item, found).catch((error: Error) => {
        if (sameForAll.test(error.message)) run.armProblem = `As for ${item.name}: ${error.message}`
        throw error
      })
    },
  }
}

/** Both halves resume: the download in its partial file, the upload from the offset that the server has. */
async function carryDisk(run: Run, client: Client, kind: ImageKind, { name, wanted }: Item, parts: string) {
  const { context, space, source } = run
  const { version = '', type = '', os, description } = wanted as Readonly<Record<string, string>>
  const file = path.join(parts, `disk-${encodeURIComponent(version)}`)
  const checkVersion = async (): Promise<void> => {
    const records = await source.list(kind.list, space)
    if (records.some((record) => record.name === name && versionOf(record) === version)) return
    await fs.rm(file, { force: true })
    throw new Failure('It changed at the source: make a new plan', '')
  }
  await checkVersion()
  await fs.mkdir(parts, { recursive: true, mode: 0o700 })
  const from = { client, kind, namespace: space, image: { name }, signal: context.signal, format: 'raw' }
  if (!mayBeThere(file)) await fetchFile(context, from, file, version).then(checkVersion)
  const { warning } = await sendFile(context, kind, { file, name, description, type, os: os as 'macos' })
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

async function pushAndPull(run: Run, source: Client, { name, wanted }: Item, found?: JsonObject): Promise<string> {
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
  const { signal } = context
  const input = { params: { namespace: space, vm }, signal }
  const jobs = () => client.listAll(listPushJobs, input)
  const findVm = async () => (await client.listAll(listVms, input)).find(({ name }) => name === vm)
  const push = async (): Promise<string> => {
    context.note(`image ${image}: VM ${vm} at the source pushes it to ${imageReference}`)
    const body = { name: vm, image, timeout: deployMinutes }
    const endMs = Date.now() + deployMinutes * 60_000
    if (!(await findVm())) await client.call(deployVm, { ...input, timeoutMs: (deployMinutes + 1) * 60_000, body })
    const found = await until((each) => each?.status !== 'Pending' || Date.now() > endMs, findVm, signal)
    if (/Pending|Failed/.test(`${found?.status}`)) throw new Failure(`VM ${vm} is ${found?.status} at the source`, '')
    return (await client.call(pushVm, { ...input, body: { imageReference } })).jobName
  }
  try {
    const earlier = (await jobs()).filter((job) => job.vm === vm && job.image === imageReference)
    const name = earlier.find(({ status }) => /Pending|Running|Succeeded/.test(status))?.name ?? (await push())
    const read = async () => (await jobs()).find((job) => job.name === name)
    const job = await until((each) => !/Pending|Running/.test(each?.status ?? ''), read, signal)
    const problem = job?.errorMessage ?? 'the job does not exist'
    if (job?.status !== 'Succeeded') throw new Failure(`The push failed at the source: ${problem}`, '')
  } finally {
    const tell = ({ message }: Error): void => context.note(visible(`VM ${vm} stays at the source: ${message}`))
    const remove = async () => (await findVm()) && client.call(deleteVm, input)
    // After an abort, the next run finds the VM.
    if (!signal.aborted) await remove().catch(tell)
  }
}
