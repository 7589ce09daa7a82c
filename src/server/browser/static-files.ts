// Files that are served from memory. A folder is read once, with the first request, so that requests open no files.
import fs from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'

type Files = ReadonlyMap<string, Buffer>

/** By name relative to the folder. A folder that does not exist has no files until it does. */
export function heldFiles(folder: string, only?: readonly string[]): () => Promise<Files> {
  let held: Promise<Files> | undefined
  const read = async (): Promise<Files> => {
    const names = only ?? (await namesIn(folder))
    if (names.length === 0) held = undefined
    return new Map(
      await Promise.all(names.map(async (name) => [name, await fs.readFile(path.join(folder, name))] as const)),
    )
  }
  return () => {
    held ??= read().catch((error: unknown) => {
      held = undefined
      throw error
    })
    return held
  }
}

async function namesIn(folder: string): Promise<readonly string[]> {
  const entries = await fs.readdir(folder, { recursive: true, withFileTypes: true }).catch((error) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => path.relative(folder, path.join(parentPath, name)))
}

const pieceBytes = 65_536

/** Sends a file in pieces as the client reads them. TLS would otherwise encrypt all of it for a client that reads nothing. */
export function sendFile(reply: FastifyReply, bytes: Buffer): FastifyReply {
  reply.header('content-length', bytes.length)
  return reply.send(bytes.length <= pieceBytes ? bytes : Readable.from(pieces(bytes), { objectMode: false }))
}

function* pieces(bytes: Buffer): Iterable<Buffer> {
  for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes)
}
