// The bytes of an NBD client: enough to read from a served disk.

/** The handshake of every client; reads follow it. */
export function nbdOpening(): Buffer {
  const go = Buffer.alloc(24)
  go.writeBigUInt64BE(0x49484156454f5054n, 0)
  go.writeUInt32BE(7, 8)
  go.writeUInt32BE(8, 12)
  go.writeUInt16BE(1, 20)
  go.writeUInt16BE(3, 22)
  return Buffer.concat([Buffer.from([0, 0, 0, 3]), go])
}

export function nbdRead(cookie: number, length: number, offset = 0): Buffer {
  const bytes = Buffer.alloc(28)
  bytes.writeUInt32BE(0x25609513, 0)
  bytes.writeBigUInt64BE(BigInt(cookie), 8)
  bytes.writeBigUInt64BE(BigInt(offset), 16)
  bytes.writeUInt32BE(length, 24)
  return bytes
}
