// A map in one append-only file: one line per change, of which the last one per key counts. For values that change
// often and need not survive a power cut, because nothing is synced.
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { writeFileWhole } from './files.ts'

/** Below this number of lines, compacting is not worth it. */
const fewLines = 1_000

/** If a change cannot be written, the method throws and the map is unchanged. */
export class KeyedLog<V> extends Map<string, V> {
  readonly #file: string
  #descriptor: number | undefined
  #lines = 0
  /** After a failed compaction: the number of lines at which the next one is tried. */
  #maxLines = 0
  /** The last line may be incomplete, so the next one must begin with a line break. */
  #isTorn = false

  /** Uses `NAME.jsonl` in this folder. */
  constructor(folder: string, name: string) {
    super()
    this.#file = path.join(folder, `${name}.jsonl`)
    const text = read(this.#file)
    this.#isTorn = text !== '' && !text.endsWith('\n')
    for (const line of text.split('\n')) this.#take(line)
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

  /** Keeps the values. The next change opens the file again. */
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
      // Compacting failed for lack of space. Single lines may still fit.
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
}

/** Undefined for invalid JSON, such as a line whose writer was killed. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}
