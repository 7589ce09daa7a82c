// The environment of the command line. The process provides it, and tests provide their own.

export interface Sink {
  readonly isTerminal: boolean
  /** Width of the terminal, if known. */
  readonly columns?: number | undefined
  /** Height of the terminal, if known. */
  readonly rows?: number | undefined
  /** Writes nothing more once the reader has closed the pipe. */
  write(text: string | Uint8Array): void
  /** Resolves when everything has been written. */
  flush(): Promise<void>
}

export interface InputStream {
  readonly isTerminal: boolean
  chunks(signal: AbortSignal): AsyncIterable<Uint8Array>
  /** For terminals: without echo, keys arrive one by one. */
  setEcho(on: boolean): void
}

export interface Host {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The name of the program in help and before messages. */
  readonly calledAs: string
  /** How commands to paste begin: the name, or the path that was typed, such as bin/svc3. */
  readonly typedAs: string
  readonly version: string
  /** Identifies the shell that runs this program, if known. */
  readonly shell?: string
  /** The folder that holds bin/ and package.json. */
  readonly checkout: string
  /** Whether the program was installed as a package. If so, it needs no build, and data does not go into its folder. */
  readonly isInstalled?: boolean
  readonly workingDir: string
  /** The words that start this program again. */
  readonly self: readonly string[]
  readonly stdin: InputStream
  readonly stdout: Sink
  readonly stderr: Sink
  now(): Date
  /** Returns a signal that aborts at the next Ctrl-C. A second Ctrl-C ends the process. */
  interruption(): AbortSignal
}
