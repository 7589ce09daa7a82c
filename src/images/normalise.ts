// Converts uploaded disks to raw ones. svc3 reads qcow2 files itself, because QEMU's tools follow the names in them;
// compressed files are streamed. The output is bounded, whatever the file declares.
import { spawn } from 'node:child_process'
import { createReadStream } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import { pipeline } from 'node:stream/promises'
import { constants, createGunzip, createZstdDecompress } from 'node:zlib'
import { childEnvironment } from '../platform/exec.ts'
import { syncFolder } from '../platform/files.ts'
import type { WorkOptions } from '../platform/parallel.ts'
import { maxDiskBytes } from '../rules/sizes.ts'
import { writeSparse } from './content/sparse-write.ts'
import { temporaryName, writeWhole } from './content/temporary-files.ts'
import { headBytes, whyNoDisk } from './foreign-files.ts'
import { sectorBytes } from './format/format.ts'
import type { DiskFormat } from './qcow2/header.ts'
import { BadDiskError, recogniseDisk } from './qcow2/header.ts'
import { qcow2ToRaw, type UnpackOptions } from './qcow2/read.ts'

interface Normalised {
  /** The format of the upload. */
  readonly format: DiskFormat
  readonly virtualSizeBytes: number
}

/** Consumes the source. After a failure the source is unchanged and there is no target. */
export async function normaliseDisk(source: string, target: string, options: UnpackOptions): Promise<Normalised> {
  const format = await formatOf(source)
  const virtualSizeBytes = await steps[format](source, target, options)
  await fs.rm(source, { force: true })
  return { format, virtualSizeBytes }
}

type Step = (source: string, target: string, options: UnpackOptions) => Promise<number>

const steps: Readonly<Record<DiskFormat, Step>> = {
  raw: takeRaw,
  qcow2: qcow2ToRaw,
  gzip: (source, target, options) => expand(source, target, options, createGunzip({ chunkSize: 2 ** 18 })),
  zstd: (source, target, options) =>
    expand(source, target, options, createZstdDecompress({ chunkSize: 2 ** 18, params: windowLimit })),
  xz: expandXz,
}

/** At most --long=27, which bounds the memory. */
const windowLimit = { [constants.ZSTD_d_windowLogMax]: 27 }

const stoppable = ({ signal }: WorkOptions) => (signal ? { signal } : {})

async function formatOf(file: string): Promise<DiskFormat> {
  await using handle = await fs.open(file, 'r')
  return recogniseDisk(await part(handle, 0, sectorBytes))
}

/** Returns fewer bytes at the end of the file. */
async function part(file: fs.FileHandle, from: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, Math.max(0, from))
  return buffer.subarray(0, bytesRead)
}

async function takeRaw(source: string, target: string): Promise<number> {
  await using file = await fs.open(source, 'r+')
  const { size } = await file.stat()
  if (size === 0) throw new BadDiskError('it is empty')
  if (size > maxDiskBytes) throw new BadDiskError(`it measures ${size} bytes, more than 64 TiB`)
  const problem = whyNoDisk(await part(file, 0, headBytes), await part(file, size - sectorBytes, sectorBytes), size)
  if (problem !== undefined) throw new BadDiskError(problem)
  await file.sync()
  await fs.rename(source, target)
  await syncFolder(path.dirname(target))
  return size
}

/** The result may be a qcow2 file, which is converted as well. */
async function expand(
  source: string,
  target: string,
  options: UnpackOptions,
  unpacker: NodeJS.ReadWriteStream,
): Promise<number> {
  const { size } = await fs.stat(source)
  return take(target, options, (write) => {
    const input = createReadStream(source, { highWaterMark: 2 ** 18 })
    // This starts the stream, so the reader MUST be attached in the same tick.
    input.on('data', () => options.onProgress?.({ bytes: input.bytesRead, of: size }))
    return pipeline(input, unpacker, write, stoppable(options))
  })
}

async function expandXz(source: string, target: string, options: UnpackOptions): Promise<number> {
  await using file = await fs.open(source, 'r')
  return await take(target, options, async (write) => {
    const child = spawn('xz', ['--decompress', '--stdout', '--memlimit-decompress=256MiB'], {
      env: childEnvironment,
      stdio: [file.fd, 'pipe', 'ignore'],
    })
    const ended = new Promise<number | null>((resolve, reject) => child.on('error', reject).on('close', resolve))
    ended.catch(() => undefined) // Awaited below; the stream may fail first.
    try {
      if (child.stdout === null) throw new Error('xz has no output')
      await pipeline(child.stdout, write, stoppable(options))
      if ((await ended) !== 0) throw new Error('xz failed')
    } finally {
      child.kill('SIGKILL')
    }
  })
}

/** The types of Node's streams include strings. */
type Sink = (pieces: AsyncIterable<Buffer | string>) => Promise<void>

async function take(target: string, options: UnpackOptions, unpackTo: (write: Sink) => Promise<void>): Promise<number> {
  const unpacked = await temporaryName(path.dirname(target))
  try {
    await writeWhole(unpacked, async (file) => {
      let bytes = 0
      let dataBytes = 0
      const write: Sink = async (pieces) => {
        for await (const given of pieces) {
          const piece = typeof given === 'string' ? Buffer.from(given) : given
          dataBytes += await writeSparse(file, piece, bytes)
          bytes += piece.length
          if (dataBytes > options.maxDataBytes || bytes > maxDiskBytes)
            throw new BadDiskError('it expands to more than is allowed here')
        }
      }
      await unpackTo(write).catch((error: unknown) => {
        options.signal?.throwIfAborted()
        const isOurs = error instanceof BadDiskError || (error as NodeJS.ErrnoException).syscall !== undefined
        throw isOurs ? error : new BadDiskError('its compressed data is damaged or incomplete')
      })
      await file.truncate(bytes)
    })
    const isQcow2 = (await formatOf(unpacked)) === 'qcow2'
    return await (isQcow2 ? qcow2ToRaw : takeRaw)(unpacked, target, options)
  } finally {
    await fs.rm(unpacked, { force: true })
  }
}
