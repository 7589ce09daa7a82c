// Lines out of bytes as they come, each of bounded length. Bytes are joined once per line, so that a long one is cheap.

export class LineTooLong extends Error {
  override readonly name = 'LineTooLong'

  constructor(maxBytes: number) {
    super(`a line is longer than ${Math.floor(maxBytes / 2 ** 20)} MiB (${maxBytes} bytes)`)
  }
}

/** What follows the last newline was cut off and is dropped. Empty lines are left out. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<string> {
  let parts: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of chunks) {
    let from = 0
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, from)) {
      parts.push(chunk.subarray(from, end))
      const line = Buffer.concat(parts).toString('utf8').trim()
      parts = []
      bytes = 0
      from = end + 1
      if (line !== '') yield line
    }
    const rest = chunk.subarray(from)
    bytes += rest.length
    if (bytes > maxBytes) throw new LineTooLong(maxBytes)
    if (rest.length > 0) parts.push(rest)
  }
}

/** Of one line; undefined when it is not JSON. */
export function valueOfLine(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
