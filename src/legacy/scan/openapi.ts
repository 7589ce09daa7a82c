// Finds the operations of OpenAPI and Swagger documents, in JSON and YAML, by their lines and indentation.

interface OpenApiCall {
  readonly line: number
  readonly column: number
  readonly method: string
  readonly path: string
}

const path = /^\s*["']?(\/[^"'\s]{0,600}?)["']?\s{0,4}:(?:\s|$)/
const operations = /(?:^\s*|[{,]\s{0,4})["']?(get|post|put|delete)["']?\s{0,4}:(?=\s|$)/g
const indentOf = (line: string): number => line.search(/\S/)

/** Returns undefined for other documents. */
export function openApiCalls(text: string): OpenApiCall[] | undefined {
  if (!/^[ {]{0,8}["']?(?:openapi|swagger)["']?\s{0,4}:/m.test(text.slice(0, 4_096))) return undefined
  const calls: OpenApiCall[] = []
  let pathsAt: number | undefined
  let current: { readonly path: string; readonly indent: number; inside: number } | undefined
  for (const [index, line] of text.split('\n').entries()) {
    const indent = indentOf(line)
    if (indent === -1) continue
    if (pathsAt === undefined || indent <= pathsAt) {
      pathsAt = /^\s*["']?paths["']?\s{0,4}:/.test(line) && indent <= 8 ? indent : undefined
      continue
    }
    const [found, place] = path.exec(line) ?? []
    if (place !== undefined && (current === undefined || indent <= current.indent))
      current = { path: place, indent, inside: 0 }
    else if (current === undefined || indent <= current.indent) continue
    else if (current.inside === 0) current.inside = indent
    if (found === undefined && indent !== current.inside) continue
    for (const { 1: method = '' } of line.slice(found?.length ?? 0).matchAll(operations))
      calls.push({ line: index + 1, column: indent + 1, method: method.toUpperCase(), path: current.path })
  }
  return calls
}
