// A tree of files in memory with owners and modes, for the root file system and the first RAM disk: no root, mount or
// chroot.
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

/** The type bits of st_mode. */
export const typeBits = {
  file: 0o100000,
  folder: 0o040000,
  link: 0o120000,
  device: 0o020000,
} as const satisfies Record<Entry['kind'], number>

/** Paths have no leading slash. Parent folders are created with an entry. */
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

  /** Paths below a folder, whose name ends in a slash, in a stable order. */
  under(folder: string): string[] {
    return [...this.#entries.keys()].filter((path) => path.startsWith(folder)).sort()
  }

  /** In a stable order, folders before their content. */
  sorted(): [string, Entry][] {
    return [...this.#entries].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  }
}
