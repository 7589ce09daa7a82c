// A remote that is a folder of a web server: `index.json` lists the files next to it.

import * as t from 'typebox'
import { Compile } from 'typebox/compile'
import { architectures } from '../../api/architecture.ts'
import { recordName } from '../../api/errors.ts'
import { parseJson } from '../../api/json.ts'
import { readAll } from '../../platform/http.ts'
import { isImageName } from '../../rules/image-names.ts'
import { maxDiskBytes } from '../../rules/sizes.ts'
import { downloadTo } from './download.ts'
import { getFrom, inTime, type RemoteAddress, RemoteError, remoteError } from './http.ts'
import type { ListedItem, RemoteSource } from './source.ts'

const Index = t.Object({
  version: t.Literal(1),
  items: t.Array(
    t.Object({
      kind: t.Enum(['image', 'iso']),
      name: t.String({ maxLength: 63 }),
      type: t.Enum(architectures),
      size: t.Integer({ minimum: 1, maximum: maxDiskBytes }),
      sha256: t.String({ pattern: '^[0-9a-f]{64}$' }),
      file: t.String({ minLength: 1, maxLength: 1_024 }),
      description: t.Optional(t.String({ maxLength: 1_024 })),
      firmware: t.Optional(t.Enum(['bios', 'uefi'])),
      os: t.Optional(t.Enum(['macos', 'linux', 'other'])),
    }),
    { maxItems: 10_000 },
  ),
})
type IndexItem = t.Static<typeof Index>['items'][number]
const shape = Compile(Index)

const maxIndexBytes = 4 * 2 ** 20
const indexMs = 10_000

export function openFolder(remote: RemoteAddress): RemoteSource {
  const read = async (signal: AbortSignal): Promise<readonly IndexItem[]> => {
    const url = new URL('index.json', remote.url)
    return inTime(`Remote ${remote.name}`, indexMs, signal, async (limited) => {
      const answer = await getFrom(remote, url, { signal: limited })
      const text = await readAll(answer, maxIndexBytes).catch((error) => {
        throw remoteError(error, remote.name, url)
      })
      return parseFolderIndex(text.toString(), remote)
    })
  }

  return {
    list: async (signal) => (await read(signal)).map(itemOf),

    async fetch({ kind, name, bytes, sha256 }, work) {
      const urlOfFile = async (signal: AbortSignal): Promise<URL> => {
        const listed = (await read(signal)).find((each) => each.kind === kind && each.name === name)
        if (listed?.sha256 === sha256 && listed.size === bytes) return new URL(listed.file, remote.url)
        throw new RemoteError(
          `${recordName(`${kind}s`, name)} of remote ${remote.name} changed during the pull: pull it again`,
          false,
        )
      }
      await downloadTo(work.file, { bytes, sha256 }, {
        signal: work.signal,
        retry: remote.retry,
        waits: work.waits,
        progress: (done) => work.progress({ percent: Math.floor((done / bytes) * 70), bytes: done }),
        async open(start, signal) {
          const headers = start === 0 ? {} : { range: `bytes=${start}-` }
          const answer = await getFrom(remote, await urlOfFile(signal), { headers, signal })
          const from = Number(/^bytes (\d+)-/.exec(answer.headers['content-range'] ?? '')?.[1])
          if (answer.status === 206 && from !== start)
            throw new RemoteError(`Remote ${remote.name} sent another range than requested`, false)
          return { start: answer.status === 206 ? start : 0, pieces: answer.body }
        },
      }) // biome-ignore format: what, then how
      return work.take()
    },
  }
}

const itemOf = ({ size, file: _, ...item }: IndexItem): ListedItem => ({ ...item, bytes: size })

/** Refuses the whole index if one entry is invalid, so that its author sees the error. */
export function parseFolderIndex(
  text: string,
  { name, url }: Pick<RemoteAddress, 'name' | 'url'>,
): readonly IndexItem[] {
  const refuse = (what: string): never => {
    throw new RemoteError(`index.json of remote ${name} ${what}`, false)
  }
  const value = parseJson(text)
  if (value === undefined) return refuse('is not JSON')
  if (!shape.Check(value)) {
    const [first] = shape.Errors(value)
    return refuse(`is invalid: ${first?.instancePath || 'it'} ${first?.message ?? ''}`)
  }
  const names = new Set<string>()
  for (const { kind, name: item, file } of value.items) {
    if (!isImageName(item)) refuse(`has an invalid ${kind} name: "${item}"`)
    if (names.has(`${kind} ${item}`)) refuse(`lists ${kind} ${item} twice`)
    names.add(`${kind} ${item}`)
    const target = URL.canParse(file, url.href) ? new URL(file, url) : undefined
    if (target?.origin !== url.origin || !target.pathname.startsWith(url.pathname) || target.username !== '')
      refuse(`lists ${kind} ${item} outside its folder`)
  }
  return value.items
}
