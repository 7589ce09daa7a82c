// Values by key that outlive this process, in one file: a line for each change, the last one of a key counts. For what changes
// often and need not survive a power cut: a change is one write to an open file, and nothing is fsynced.
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { writeFileWhole } from './files.ts'

/** Fewer lines are not worth writing the file anew. */
const fewLines = 1_000

/** A map. Where a change cannot be written, it throws, and nothing has changed. */
export class KeyedLog<V> extends Map<string, V> {
  readonly #file: string
  #descriptor: number | undefined
  #lines = 0
  /** The file is not written anew before it has so many. */
  #maxLines = 0
  /** The last line may be half there: the next one must not go on in it. */
  #isTorn = false

  /** In `NAME.jsonl` of this folder. What an earlier version kept of each key, in `KEY/NAME.json`, is moved there. */
  constructor(folder: string, name: string) {
    super()
    this.#file = path.join(folder, `${name}.jsonl`)
    const text = ifThere(() => readFileSync(this.#file, 'utf8')) ?? ''
    this.#isTorn = text !== '' && !text.endsWith('\n')
    for (const line of text.split('\n')) this.#take(line)
    for (const entry of ifThere(() => readdirSync(folder, { withFileTypes: true })) ?? [])
      if (entry.isDirectory()) this.#move(entry.name, path.join(folder, entry.name, `${name}.json`))
  }

  override set(key: string, value: V): this {
    this.#append([key, value])
    return super.set(key, value)
  }

  override delete(key: string): boolean {
    if (!this.has(key)) return false
    this.#append([key])
    return super.delete(key)
  }

  /** The values stay; the next change opens the file again. */
  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor)
    this.#descriptor = undefined
  }

  #append(change: readonly [string, V?]): void {
    if (this.#lines > Math.max(fewLines + 4 * this.size, this.#maxLines)) this.#compact()
    const line = `${JSON.stringify(change)}\n`
    this.#descriptor ??= this.#open()
    const begin = this.#isTorn ? '\n' : ''
    this.#isTorn = true
    writeFileSync(this.#descriptor, begin + line)
    this.#isTorn = false
    this.#lines++
  }

  #open(): number {
    mkdirSync(path.dirname(this.#file), { recursive: true, mode: 0o700 })
    return openSync(this.#file, 'a', 0o600)
  }

  #compact(): void {
    try {
      writeFileWhole(this.#file, [...this].map((change) => `${JSON.stringify(change)}\n`).join(''))
    } catch {
      // One more line may fit where all of them do not.
      this.#maxLines = this.#lines + fewLines
      return
    }
    this.close()
    this.#isTorn = false
    this.#lines = this.size
  }

  #take(line: string): void {
    const change = parse(line)
    if (change === undefined) return
    const [key, value] = change as [string, V?]
    if (value === undefined) super.delete(key)
    else super.set(key, value)
    this.#lines++
  }

  #move(key: string, file: string): void {
    const value = parse(ifThere(() => readFileSync(file, 'utf8')) ?? '')
    if (value === undefined) return
    // Where both are there, a kill -9 came in between, or an agent of an earlier version wrote since.
    this.set(key, value as V)
    rmSync(file)
  }
}

/** Undefined where it is no JSON, such as the beginning of a line whose writer was killed. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function ifThere<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
