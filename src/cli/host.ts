// What the command line needs of its environment. The process provides it; tests provide their own.

export interface Sink {
  readonly isTerminal: boolean
  /** How many characters a line of the terminal has, where that is known. */
  readonly columns?: number | undefined
  /** How many lines the terminal has, where that is known. */
  readonly rows?: number | undefined
  /** Writes all of it; once the reader has gone away, nothing more. */
  write(text: string | Uint8Array): void
  /** Resolves when all of it has been written: for large output. */
  flush(): Promise<void>
}

export interface InputStream {
  readonly isTerminal: boolean
  /** Standard input, until its end. */
  chunks(signal: AbortSignal): AsyncIterable<Uint8Array>
  /** Terminals only: with `false`, keys arrive one by one and are not shown. */
  setEcho(on: boolean): void
}

export interface Host {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The name in help and before messages. */
  readonly calledAs: string
  /** What a line to paste begins with: the name, or the path that was typed, such as bin/svc3. */
  readonly typedAs: string
  /** Of this program. */
  readonly version: string
  /** The folder that holds bin/ and package.json. */
  readonly checkout: string
  /** It was installed as a package: there is nothing to build, and its folder is not for data. */
  readonly isInstalled?: boolean
  readonly workingDir: string
  /** The words that start this program again. */
  readonly self: readonly string[]
  readonly stdin: InputStream
  readonly stdout: Sink
  readonly stderr: Sink
  now(): Date
  /** Aborts at Ctrl-C, from this call on; a second Ctrl-C ends the process. */
  interruption(): AbortSignal
}
