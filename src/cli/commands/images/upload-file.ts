// Sends a file to the service, and shows how far it is; then what the service makes of it.
import type { Image } from '../../../api/images.ts'
import type { Client } from '../../../client/client.ts'
import type { BodyStream } from '../../../client/transport.ts'
import { nameOfFile } from '../../../rules/image-names.ts'
import type { Context } from '../../context.ts'
import { type Meter, startMeter } from '../../transfer.ts'
import { Failure, Interrupted } from '../../usage.ts'
import type { ImageKind } from './kind.ts'
import { checkName } from './options.ts'

export interface UploadChoice {
  readonly file: string
  readonly name: string | undefined
  readonly description: string | undefined
  readonly type: string
}

const pieceBytes = 2 ** 20

export async function uploadFile(context: Context, kind: ImageKind, choice: UploadChoice): Promise<number> {
  const { host, signal } = context
  const { description, type } = choice
  const file = process.getBuiltinModule('node:path').resolve(host.workingDir, choice.file)
  const name = checkName(choice.name ?? nameOfFile(file), kind.word, 'give another one with --name')
  await using source = await openFile(file)
  const { client, namespace } = await context.connect()
  const meter = startMeter(context, `${kind.word} ${name}`, source.bytes)
  const over = new AbortController()
  const pieces = (async function* () {
    let sent = 0
    for await (const piece of source.pieces) {
      yield piece
      sent += piece.length
      meter.at(sent)
    }
    if (context.isTalking) void follow(client, kind, { namespace, name }, meter, over.signal).catch(() => undefined)
  })()
  try {
    const image = (await client.upload(kind.upload, {
      params: { namespace },
      query: { name, type, ...(description !== undefined && { description }) },
      upload: { bytes: source.bytes, pieces },
      signal,
    })) as Image
    meter.end()
    await context.done(`${kind.word === 'iso' ? 'ISO' : 'Image'} ${name} is uploaded.`, image)
    return 0
  } catch (error) {
    if (signal.aborted)
      throw new Interrupted('interrupted', `"${host.calledAs} ${kind.word} list ${name}" shows whether it was complete`)
    throw error
  } finally {
    over.abort()
    meter.end()
  }
}

/** Once all is sent, the record tells how far the service is with it. */
async function follow(
  client: Client,
  kind: ImageKind,
  { namespace, name }: { namespace: string; name: string },
  meter: Meter,
  signal: AbortSignal,
): Promise<void> {
  const { watch } = await import('../../../client/watch.ts')
  const input = { params: { namespace }, query: { fieldSelector: `name=${name}` } }
  for await (const { type, object } of watch(client, kind.list, input as never, { signal })) {
    const { progress } = object as Partial<Image>
    if (type !== 'BOOKMARK' && progress && !signal.aborted)
      meter.show({ text: 'the service takes it in', percent: progress.percent })
  }
}

async function openFile(file: string): Promise<BodyStream & AsyncDisposable> {
  const fs = process.getBuiltinModule('node:fs/promises')
  try {
    const handle = await fs.open(file, 'r')
    const stat = await handle.stat()
    const close = () => handle.close()
    if (!stat.isFile() || stat.size === 0) {
      await close()
      throw new Failure(`${file} is ${stat.isFile() ? 'empty' : 'not a file'}`, 'give the file of a disk')
    }
    return { bytes: stat.size, pieces: piecesOf(handle, stat.size, file), [Symbol.asyncDispose]: close }
  } catch (error) {
    if (error instanceof Failure) throw error
    throw new Failure(`cannot read ${file} (${(error as NodeJS.ErrnoException).code})`, 'check the name of the file')
  }
}

type Handle = Awaited<ReturnType<typeof import('node:fs/promises').open>>

/** Exactly as many bytes as were announced. */
async function* piecesOf(handle: Handle, bytes: number, file: string): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes; ) {
    const piece = Buffer.allocUnsafe(Math.min(pieceBytes, bytes - at))
    const { bytesRead } = await handle.read(piece, 0, piece.length, at)
    if (bytesRead === 0) throw new Failure(`${file} became shorter while it was sent`, 'send it again')
    at += bytesRead
    yield piece.subarray(0, bytesRead)
  }
}
