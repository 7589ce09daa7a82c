// Legacy calls in OpenAPI and Swagger documents: every operation, which is a path with a method, and nothing else in them.
import type { Candidate } from './finding.ts'
import type { JsonValue } from './json.ts'
import { matchOf } from './match.ts'
import type { Source } from './source.ts'
import { methodOfWord } from './verbs.ts'
import { templateOf } from './words.ts'
import type { Entry } from './yaml.ts'

export const isOpenApiJson = (root: JsonValue): boolean =>
  (root.members?.has('openapi') || root.members?.has('swagger')) === true && root.members?.has('paths') === true

export const isOpenApiYaml = (entries: readonly Entry[]): boolean =>
  entries.some(({ key, indent }) => indent === 0 && (key === 'openapi' || key === 'swagger'))

export function openApiJsonCandidates(root: JsonValue, source: Source): Candidate[] {
  const mentionsProduct = /orka/i.test(root.members?.get('info')?.members?.get('title')?.text ?? '')
  const paths = [...(root.members?.get('paths')?.members ?? [])]
  return paths.flatMap(([path, { members, keys }]) =>
    [...(members ?? [])].flatMap(([key]) => operation(path, key, source, keys?.get(key) ?? 0, mentionsProduct)),
  )
}

export function openApiYamlCandidates(entries: readonly Entry[], source: Source): Candidate[] {
  const mentionsProduct = entries.some(({ key, value }) => key === 'title' && /orka/i.test(value))
  return entries.flatMap(({ key, parent, line }) => {
    const path = entries[parent]
    const root = entries[path?.parent ?? -1]
    const isOperation = path !== undefined && root?.key === 'paths' && root.indent === 0
    const candidates = isOperation ? operation(path.key, key, source, 0, mentionsProduct) : []
    return candidates.map((candidate) => ({ ...candidate, line, column: (entries[parent]?.indent ?? 0) + 3 }))
  })
}

function operation(path: string, key: string, source: Source, at: number, mentionsProduct: boolean): Candidate[] {
  const method = methodOfWord(key)
  const match =
    method === undefined || !path.startsWith('/')
      ? undefined
      : matchOf(templateOf(path.replaceAll(/\{[^{}]*\}/g, '$${x}')))
  if (!match) return []
  return [
    {
      ...source.place(at),
      text: `${key} ${path}`,
      match,
      method,
      isRequest: true,
      mentionsProduct,
      receiver: 'openapi',
    },
  ]
}
