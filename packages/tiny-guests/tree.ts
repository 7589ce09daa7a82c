// A tree of files in memory, with owners and modes, from which the root file system and the first RAM disk are written:
// no need to be root, to mount or to chroot.
interface Owned {
  readonly mode: number
  readonly uid?: number
  readonly gid?: number
}
export type Entry = Owned &
  (
    | { readonly kind: 'file'; readonly data: Uint8Array }
    | { readonly kind: 'folder' }
    | { readonly kind: 'link'; readonly target: string }
    | { readonly kind: 'device'; readonly major: number; readonly minor: number }
  )

/** What the kinds of files are called in st_mode. */
export const typeBits = {
  file: 0o100000,
  folder: 0o040000,
  link: 0o120000,
  device: 0o020000,
} as const satisfies Record<Entry['kind'], number>

/** Paths have no leading slash. Folders above an entry come into being with it. */
export class Tree {
  readonly #entries = new Map<string, Entry>()

  add(path: string, entry: Entry): this {
    const above = path.lastIndexOf('/')
    if (above > 0 && !this.#entries.has(path.slice(0, above))) this.folder(path.slice(0, above))
    this.#entries.set(path, entry)
    return this
  }

  file(path: string, data: Uint8Array | string, mode = 0o644, owner: { uid?: number; gid?: number } = {}): this {
    return this.add(path, { kind: 'file', data: typeof data === 'string' ? Buffer.from(data) : data, mode, ...owner })
  }

  script(path: string, text: string): this {
    return this.file(path, text, 0o755)
  }

  folder(path: string, mode = 0o755, owner: { uid?: number; gid?: number } = {}): this {
    return this.add(path, { kind: 'folder', mode, ...owner })
  }

  link(path: string, target: string): this {
    return this.add(path, { kind: 'link', target, mode: 0o777 })
  }

  get(path: string): Entry | undefined {
    return this.#entries.get(path)
  }

  has(path: string): boolean {
    return this.#entries.has(path)
  }

  /** Paths of all that is in a folder, in always the same order. The folder's name ends in a slash. */
  under(folder: string): string[] {
    return [...this.#entries.keys()].filter((path) => path.startsWith(folder)).sort()
  }

  /** Folders before what is in them, always in the same order. */
  sorted(): [string, Entry][] {
    return [...this.#entries].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  }
}
