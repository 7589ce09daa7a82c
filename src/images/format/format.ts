// What an image is: a manifest over content-addressed chunks. A chunk is bytes for a list of extents of the disk; later
// layers win over earlier ones; what no layer names is zero. Pure: no I/O. Everything is immutable once it has a digest.
import * as t from 'typebox'
import { Compile } from 'typebox/compile'
import { architectures } from '../../api/architecture.ts'

export const formatVersion = 1
export const mediaType = 'application/vnd.svc3.image.manifest.v1+json'
/** Chunks of a whole disk; also the most that one chunk may hold uncompressed. */
export const chunkBytes = 16 * 2 ** 20
/** Extents are whole blocks of this size. The last block of a disk that ends inside it is filled up with zeros. */
export const blockBytes = 64 * 1_024
/** Disks are made of sectors. */
export const sectorBytes = 512
export const largestManifestBytes = 16 * 2 ** 20
/** Of a whole manifest, attachments included. They bound what a hostile one can make us hold. */
export const maxChunks = 100_000
export const maxExtents = 1_000_000
export const maxLayers = 64

export const digestPattern = /^sha256:[0-9a-f]{64}$/
const Digest = t.String({ pattern: digestPattern.source })
const Bytes = t.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
const closed = { additionalProperties: false }

/** [offset, length] on the disk, in bytes, both multiples of blockBytes. */
const Extent = t.Tuple([Bytes, Bytes])
export type Extent = readonly [offset: number, length: number]

/** `digest` is that of the stored bytes (zstd, or none when that does not pay); `rawBytes` what they expand to. */
const Chunk = t.Object(
  {
    digest: Digest,
    storedBytes: Bytes,
    rawBytes: Bytes,
    compression: t.Enum(['zstd', 'none']),
    /** Of what they expand to, where that is something else. Images of earlier versions do not say. */
    rawDigest: t.Optional(Digest),
    /** In order, not overlapping, also from chunk to chunk of a layer; their lengths add up to rawBytes. */
    extents: t.Array(Extent),
  },
  closed,
)

/** A layer: the whole disk, or the blocks that differ from the layers before it. */
const Layer = t.Object(
  {
    chunks: t.Array(Chunk),
    /** What is zero again where an earlier layer has data: in order, overlapping neither each other nor the chunks. */
    zeros: t.Optional(t.Array(Extent)),
  },
  closed,
)

/** A file that goes with the disk (kernel, initrd, memory, NVRAM), in chunks of its own; what they leave out is zero. */
const Attachment = t.Object({ bytes: Bytes, chunks: t.Array(Chunk) }, closed)

/**
 * What tart keeps of a machine beside its disk, as it was: its config (JSON with model, identifier, …), and the memory of
 * its firmware, without which macOS does not boot.
 */
const Machine = t.Object({ config: Attachment, nvram: t.Optional(Attachment) }, closed)

const Manifest = t.Object(
  {
    formatVersion: t.Literal(formatVersion),
    architecture: t.Enum(architectures),
    /** Which guest the disk holds, where somebody said so. */
    os: t.Optional(t.Enum(['macos', 'linux', 'other'])),
    virtualSizeBytes: Bytes,
    boot: t.Union([
      t.Object({ kind: t.Literal('firmware'), firmware: t.Optional(t.Enum(['bios', 'uefi'])) }, closed),
      t.Object(
        {
          kind: t.Literal('kernel'),
          kernel: Attachment,
          initrd: t.Optional(Attachment),
          /** One line of printable ASCII: it becomes an argument of the hypervisor. */
          commandLine: t.String({ maxLength: 2_048, pattern: '^[ -~]*$' }),
        },
        closed,
      ),
    ]),
    layers: t.Array(Layer),
    machine: t.Optional(Machine),
    /** The manifest that this one was made from, when it was. */
    parent: t.Optional(Digest),
    /** Memory of a running VM. It fits a VM of exactly this description; any other boots from the disk. */
    memory: t.Optional(
      t.Object(
        {
          state: Attachment,
          /** Hypervisor, its version, machine, processor, cores, memory, devices: compared as a whole. */
          description: t.Record(
            t.String({ pattern: '^[a-zA-Z][a-zA-Z0-9._-]{0,63}$' }),
            t.Union([t.String({ maxLength: 4_096 }), Bytes]),
            closed,
          ),
        },
        closed,
      ),
    ),
  },
  { title: 'ImageManifest', ...closed },
)

export type Chunk = Frozen<t.Static<typeof Chunk>>
export type Layer = Frozen<t.Static<typeof Layer>>
export type Attachment = Frozen<t.Static<typeof Attachment>>
export type Manifest = Frozen<t.Static<typeof Manifest>>
export type Compression = Chunk['compression']

type Frozen<T> = T extends string | number | undefined ? T : { readonly [Key in keyof T]: Frozen<T[Key]> }

const shape = Compile(Manifest)

/** Whether a value looks like a manifest; whether it makes sense is manifest.ts's to say. */
export const hasShape = (value: unknown): value is Manifest => shape.Check(value)

/** Where and why it does not, for a message. */
export function shapeProblem(value: unknown): string {
  const [first] = shape.Errors(value)
  return first === undefined ? 'it is not a manifest' : `${first.instancePath || 'the whole'} ${first.message}`
}
