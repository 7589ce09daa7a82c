// The format of images: a manifest over chunks that are named by their digests. A chunk has the bytes of some extents
// of the disk; later layers hide earlier ones; everything else is zero. Content with a digest is immutable.
import * as t from 'typebox'
import { Compile } from 'typebox/compile'
import { architectures } from '../../api/architecture.ts'

export const formatVersion = 1
export const mediaType = 'application/vnd.svc3.image.manifest.v1+json'
/** The alignment of chunks on a disk, and the most that one may hold uncompressed. */
export const chunkBytes = 16 * 2 ** 20
/** Extents are whole blocks. The last block of a disk is padded with zeros. */
export const blockBytes = 64 * 1_024
export const sectorBytes = 512
export const maxManifestBytes = 16 * 2 ** 20
/** Limits of a manifest with its attachments, which bound the memory that a malicious one takes. */
export const maxChunks = 100_000
export const maxExtents = 1_000_000
export const maxLayers = 64

export const digestPattern = /^sha256:[0-9a-f]{64}$/
const Digest = t.String({ pattern: digestPattern.source })
const Bytes = t.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
const closed = { additionalProperties: false }

/** [offset, length] in bytes, multiples of blockBytes. */
const Extent = t.Tuple([Bytes, Bytes])
export type Extent = readonly [offset: number, length: number]

/** `digest` is of the stored bytes, which are compressed if that pays; `rawBytes` is the uncompressed length. */
const Chunk = t.Object(
  {
    digest: Digest,
    storedBytes: Bytes,
    rawBytes: Bytes,
    compression: t.Enum(['zstd', 'none']),
    /** The digest of the uncompressed bytes, if it differs. Images of earlier versions lack it. */
    rawDigest: t.Optional(Digest),
    /** Sorted, without overlaps within a layer. Their lengths add up to rawBytes. */
    extents: t.Array(Extent),
  },
  closed,
)

/** The whole disk, or the blocks that differ from the layers before. */
const Layer = t.Object(
  {
    chunks: t.Array(Chunk),
    /** Zeros that hide data of earlier layers. Sorted; overlap neither each other nor the chunks. */
    zeros: t.Optional(t.Array(Extent)),
  },
  closed,
)

/** A file that belongs to the disk, such as kernel, memory or NVRAM. Ranges without a chunk are zero. */
const Attachment = t.Object({ bytes: Bytes, chunks: t.Array(Chunk) }, closed)

/**
 * The machine of a tart image: its config (JSON with model, identifier, …) and its NVRAM, without which macOS does not
 * boot.
 */
const Machine = t.Object({ config: Attachment, nvram: t.Optional(Attachment) }, closed)

const Manifest = t.Object(
  {
    formatVersion: t.Literal(formatVersion),
    architecture: t.Enum(architectures),
    /** The guest's operating system, if declared. */
    os: t.Optional(t.Enum(['macos', 'linux', 'other'])),
    virtualSizeBytes: Bytes,
    boot: t.Union([
      t.Object({ kind: t.Literal('firmware'), firmware: t.Optional(t.Enum(['bios', 'uefi'])) }, closed),
      t.Object(
        {
          kind: t.Literal('kernel'),
          kernel: Attachment,
          initrd: t.Optional(Attachment),
          /** Printable ASCII in one line, because it becomes an argument of the hypervisor. */
          commandLine: t.String({ maxLength: 2_048, pattern: '^[ -~]*$' }),
        },
        closed,
      ),
    ]),
    layers: t.Array(Layer),
    machine: t.Optional(Machine),
    /** The manifest that this image was made from. */
    parent: t.Optional(Digest),
    /** The memory of a running VM. A VM with another description boots from the disk. */
    memory: t.Optional(
      t.Object(
        {
          state: Attachment,
          /** Hypervisor, version, machine, processor, cores, memory, devices. Compared as a whole. */
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

/** Checks the shape only; see `checkManifest`. */
export const hasShape = (value: unknown): value is Manifest => shape.Check(value)

export function shapeProblem(value: unknown): string {
  const [first] = shape.Errors(value)
  return first === undefined ? 'it is not a manifest' : `${first.instancePath || 'the whole'} ${first.message}`
}
