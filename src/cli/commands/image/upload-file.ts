// Uploads a file and shows the progress, then that of the processing by the service. After an interruption, the same
// command resumes.

import path from 'node:path'
import { ApiError } from '../../../api/errors.ts'
import type { Image } from '../../../api/images/images.ts'
import { beginUpload, continueUpload, finishUpload, getUpload, type Upload } from '../../../api/images/uploads.ts'
import type { Client } from '../../../client/client.ts'
import { watch } from '../../../client/watch.ts'
import { defined } from '../../../platform/defined.ts'
import { isTransient, retry, retryPolicies } from '../../../platform/retry.ts'
import { nameOfFile } from '../../../rules/image-names.ts'
import { sizeText } from '../../../rules/sizes.ts'
import type { Context } from '../../command.ts'
import { Interrupted } from '../../line/usage.ts'
import { startMeter, type TransferMeter } from '../../output/progress.ts'
import type { ImageKind } from './kind.ts'
import { checkName } from './options.ts'
import { openSource, type UploadSource } from './upload-source.ts'

interface UploadChoice {
  readonly file: string
  readonly name: string | undefined
  readonly description: string | undefined
  readonly type: string
  readonly firmware?: string | undefined
  readonly os?: Image['os'] | undefined
}

const finishMs = 24 * 3_600_000

export async function uploadFile(context: Context, kind: ImageKind, choice: UploadChoice): Promise<undefined> {
  const image = await sendFile(context, kind, choice)
  await context.done(`${kind.label} ${image.name} uploaded.`, image)
  if (image.warning !== undefined) context.note(image.warning)
}

export async function sendFile(context: Context, kind: ImageKind, choice: UploadChoice): Promise<Image> {
  const { host, signal } = context
  const { description, type, firmware, os } = choice
  const file = path.resolve(host.workingDir, choice.file)
  const name = checkName(choice.name ?? nameOfFile(file), kind.word, 'Choose another name with --name')
  await using source = await openSource(file)
  const { client, namespace } = await context.connect()
  const body = {
    kind: kind.word,
    name,
    size: source.bytes,
    key: source.key,
    type: type as 'amd64' | 'arm64',
    ...defined({ description, firmware: firmware as 'bios' | 'uefi' | undefined, os }),
  }
  const begun = await client.call(beginUpload, { params: { namespace }, body, signal })
  if (begun.offset > 0) context.note(`Resuming after ${sizeText(begun.offset)} of ${sizeText(begun.size)}`)
  const params = { namespace, upload: begun.id }
  const meter = startMeter(context, `${kind.word} ${name}`, source.bytes, begun.offset)
  const finished = new AbortController()
  try {
    await send(client, params, begun, source, meter, signal)
    if (context.isTalking) void follow(client, kind, { namespace, name }, meter, finished.signal).catch(() => undefined)
    return await finish(client, params, await source.digest(), signal)
  } catch (error) {
    if (signal.aborted) throw new Interrupted('Upload interrupted', 'Run the same command within a day to resume')
    throw error
  } finally {
    finished.abort()
    meter.end()
  }
}

type Params = { readonly namespace: string; readonly upload: string }

/** Sends the file, across any number of lost connections as long as there is progress. */
async function send(
  client: Client,
  params: Params,
  begun: Upload,
  source: UploadSource,
  meter: TransferMeter,
  signal: AbortSignal,
) {
  let { offset } = begun
  const attempt = async (progressed: () => void): Promise<void> => {
    if (offset >= source.bytes) return
    try {
      const pieces = counted(source.from(offset), offset, meter)
      const upload = { bytes: source.bytes - offset, pieces }
      const sent = await client.upload(continueUpload, { params, query: { offset }, upload, signal })
      offset = sent.offset
    } catch (error) {
      if (signal.aborted || !isRetriable(error)) throw error
      const reached = await client.call(getUpload, { params, signal }).catch((missing: unknown) => {
        if (signal.aborted || !isRetriable(missing)) throw missing
        return { offset }
      })
      if (reached.offset > offset) progressed()
      offset = reached.offset
      throw error
    }
  }
  await retry(attempt, { policy: { ...retryPolicies.longCall, steadyMs: Infinity }, signal, isRetriable })
}

/** Finishes the upload. A retry has the same idempotency key, so it gets the first response. */
function finish(client: Client, params: Params, sha256: string, signal: AbortSignal): Promise<Image> {
  const idempotencyKey = `finish-${params.upload}-${Date.now().toString(36)}`
  const input = { params, body: { sha256 }, idempotencyKey, signal, timeoutMs: finishMs }
  return retry(() => client.call(finishUpload, input), { policy: retryPolicies.longCall, signal, isRetriable })
}

/** A conflict means that the service has another offset, which `send` reads before its next attempt. */
const isRetriable = (error: unknown): boolean =>
  isTransient(error) || (error instanceof ApiError && error.reason === 'Conflict')

async function* counted(
  pieces: AsyncIterable<Uint8Array>,
  offset: number,
  meter: TransferMeter,
): AsyncGenerator<Uint8Array> {
  let at = offset
  for await (const piece of pieces) {
    yield piece
    at += piece.length
    meter.at(at)
  }
}

/** Shows the progress of the service, which it reports in the record. */
async function follow(
  client: Client,
  kind: ImageKind,
  { namespace, name }: { namespace: string; name: string },
  meter: TransferMeter,
  signal: AbortSignal,
): Promise<void> {
  const input = { params: { namespace }, query: { fieldSelector: `name=${name}` } }
  for await (const { type, object } of watch(client, kind.list, input as never, { signal })) {
    const { progress } = object as Partial<Image>
    if (type !== 'BOOKMARK' && progress && !signal.aborted)
      meter.show({ text: 'processing on the server', percent: progress.percent })
  }
}
