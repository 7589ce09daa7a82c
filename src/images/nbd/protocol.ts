// The server's side of NBD for one read-only disk: fixed newstyle handshake, simple replies, no TLS. No I/O. The state
// of a connection is bounded.
// https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md

export type NbdAction =
  | { readonly kind: 'send'; readonly bytes: Buffer }
  /** To be answered with `readReply`, in any order. */
  | { readonly kind: 'read'; readonly cookie: bigint; readonly offset: number; readonly length: number }
  /** The client disconnects, or does not speak NBD. */
  | { readonly kind: 'end'; readonly problem?: string }

/** QEMU learns this limit in the handshake and splits longer reads. */
export const maxReadBytes = 2 * 2 ** 20
const preferredBytes = 65_536
const maxOptionBytes = 4_096
/** QEMU sends five at most. */
const maxOptions = 64

const magic = {
  hello: 0x4e42444d41474943n,
  option: 0x49484156454f5054n,
  optionReply: 0x0003e889045565a9n,
  request: 0x25609513,
  reply: 0x67446698,
} as const
const handshakeFlags = { fixedNewstyle: 1, noZeroes: 2 } as const
const option = { exportName: 1, abort: 2, list: 3, info: 6, go: 7 } as const
const optionReply = { ack: 1, server: 2, info: 3, unsupported: 0x8000_0001, invalid: 0x8000_0003 } as const
const info = { export: 0, blockSize: 3 } as const
/** Has flags, read-only, multiple connections. */
const exportFlags = 1 | 2 | 0x100
const command = { read: 0, write: 1, disconnect: 2, flush: 3 } as const
const errors = { notPermitted: 1, io: 5, invalid: 22 } as const
const requestBytes = 28
const optionHeadBytes = 16

export const greeting = (): Buffer => {
  const bytes = Buffer.alloc(18)
  bytes.writeBigUInt64BE(magic.hello, 0)
  bytes.writeBigUInt64BE(magic.option, 8)
  bytes.writeUInt16BE(handshakeFlags.fixedNewstyle | handshakeFlags.noZeroes, 16)
  return bytes
}

/** The header of a reply. The data follows. */
export function readReply(cookie: bigint, error: keyof typeof errors | undefined = undefined): Buffer {
  const bytes = Buffer.alloc(16)
  bytes.writeUInt32BE(magic.reply, 0)
  bytes.writeUInt32BE(error === undefined ? 0 : errors[error], 4)
  bytes.writeBigUInt64BE(cookie, 8)
  return bytes
}

type Phase = 'flags' | 'options' | 'requests' | 'over'

/** One connection. `take` accepts pieces of any size. */
export class NbdSession {
  readonly #diskBytes: number
  #phase: Phase = 'flags'
  #hasZeroes = true
  #options = 0
  /** An incomplete option or request. */
  #rest: Buffer = Buffer.alloc(0)

  /** Each parser returns how many bytes it has used; 0 if it needs more. */
  readonly #parts: Readonly<Record<Exclude<Phase, 'over'>, (bytes: Buffer) => Generator<NbdAction, number>>> = {
    flags: (bytes) => this.#flags(bytes),
    options: (bytes) => this.#option(bytes),
    requests: (bytes) => this.#request(bytes),
  }

  constructor(diskBytes: number) {
    this.#diskBytes = diskBytes
  }

  *take(piece: Buffer): Generator<NbdAction> {
    let bytes = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece])
    while (this.#phase !== 'over') {
      const used = yield* this.#parts[this.#phase](bytes)
      if (used === 0) break
      bytes = bytes.subarray(used)
    }
    // A copy, so that the much longer buffer it is part of can be freed.
    this.#rest = this.#phase === 'over' ? Buffer.alloc(0) : Buffer.from(bytes)
  }

  *#flags(bytes: Buffer): Generator<NbdAction, number> {
    if (bytes.length < 4) return 0
    const flags = bytes.readUInt32BE(0)
    if ((flags & ~3) !== 0) return yield* this.#end('unknown handshake flags')
    this.#hasZeroes = (flags & handshakeFlags.noZeroes) === 0
    this.#phase = 'options'
    return 4
  }

  *#option(bytes: Buffer): Generator<NbdAction, number> {
    if (bytes.length < optionHeadBytes) return 0
    if (bytes.readBigUInt64BE(0) !== magic.option) return yield* this.#end('not an NBD option')
    const kind = bytes.readUInt32BE(8)
    const length = bytes.readUInt32BE(12)
    if (length > maxOptionBytes) return yield* this.#end('an option is too long')
    if (bytes.length < optionHeadBytes + length) return 0
    if (++this.#options > maxOptions) return yield* this.#end('too many options')
    const data = bytes.subarray(optionHeadBytes, optionHeadBytes + length)
    if (kind === option.exportName) {
      this.#phase = 'requests'
      yield send(Buffer.concat([this.#export(), Buffer.alloc(this.#hasZeroes ? 124 : 0)]))
    } else if (kind === option.abort) {
      yield send(replyTo(kind, optionReply.ack))
      yield* this.#end()
    } else if (kind === option.list && length === 0) {
      yield send(replyTo(kind, optionReply.server, Buffer.alloc(4)))
      yield send(replyTo(kind, optionReply.ack))
    } else if (kind === option.info || kind === option.go) yield* this.#info(kind, data)
    else yield send(replyTo(kind, optionReply.unsupported))
    return optionHeadBytes + length
  }

  *#info(kind: number, data: Buffer): Generator<NbdAction> {
    const nameBytes = data.length < 6 ? Number.NaN : data.readUInt32BE(0)
    const countAt = 4 + nameBytes
    const isWhole = countAt + 2 <= data.length && countAt + 2 + 2 * data.readUInt16BE(countAt) === data.length
    if (!isWhole) return yield send(replyTo(kind, optionReply.invalid))
    yield send(replyTo(kind, optionReply.info, Buffer.concat([uint16(info.export), this.#export()])))
    const sizes = Buffer.alloc(14)
    sizes.writeUInt16BE(info.blockSize, 0)
    sizes.writeUInt32BE(1, 2)
    sizes.writeUInt32BE(preferredBytes, 6)
    sizes.writeUInt32BE(maxReadBytes, 10)
    yield send(replyTo(kind, optionReply.info, sizes))
    yield send(replyTo(kind, optionReply.ack))
    if (kind === option.go) this.#phase = 'requests'
  }

  *#request(bytes: Buffer): Generator<NbdAction, number> {
    if (bytes.length < requestBytes) return 0
    if (bytes.readUInt32BE(0) !== magic.request) return yield* this.#end('not an NBD request')
    const kind = bytes.readUInt16BE(6)
    const cookie = bytes.readBigUInt64BE(8)
    const offset = bytes.readBigUInt64BE(16)
    const length = bytes.readUInt32BE(24)
    if (kind === command.disconnect) return yield* this.#end()
    // The data of the write would follow and is not parsed: no proper client writes to a read-only disk.
    if (kind === command.write) return yield* this.#end('a write to a disk that is only read')
    if (kind === command.flush) yield send(readReply(cookie))
    else if (kind !== command.read) yield send(readReply(cookie, 'invalid'))
    else if (length === 0 || length > maxReadBytes || offset + BigInt(length) > BigInt(this.#diskBytes))
      yield send(readReply(cookie, 'invalid'))
    else yield { kind: 'read', cookie, offset: Number(offset), length }
    return requestBytes
  }

  *#end(problem?: string): Generator<NbdAction, number> {
    this.#phase = 'over'
    yield { kind: 'end', ...(problem !== undefined && { problem }) }
    return 0
  }

  #export(): Buffer {
    const bytes = Buffer.alloc(10)
    bytes.writeBigUInt64BE(BigInt(this.#diskBytes), 0)
    bytes.writeUInt16BE(exportFlags, 8)
    return bytes
  }
}

const send = (bytes: Buffer): NbdAction => ({ kind: 'send', bytes })

function uint16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16BE(value)
  return bytes
}

function replyTo(kind: number, type: number, data = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(20)
  head.writeBigUInt64BE(magic.optionReply, 0)
  head.writeUInt32BE(kind, 8)
  head.writeUInt32BE(type, 12)
  head.writeUInt32BE(data.length, 16)
  return Buffer.concat([head, data])
}
