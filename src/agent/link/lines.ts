// Lines of the connection: what each says, and the one that is too long.

export class LineTooLong extends Error {
  override readonly name = 'LineTooLong'

  constructor(maxBytes: number) {
    super(`a line is longer than ${Math.floor(maxBytes / 2 ** 20)} MiB (${maxBytes} bytes)`)
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
