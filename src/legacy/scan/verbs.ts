// The words by which libraries and people say with which method they ask.

const methods = 'get|post|put|delete'
const verbPrefixes =
  '(?:do|send|make|http|api|client|curl|rest|call|request|new|json|exec|execute|build|create|fetch|perform|async|raw|auth|authorized|with)*'
const verbSuffixes =
  '(?:request|json|form|async|asjson|asform|stringasync|string|fromjson|forobject|forentity|forlocation|call|api|raw|data|multipart|body|resource|http|url|bytes|bytearray|stream|withbody|with|method|file|files|object)*'
const calling = new RegExp(`^${verbPrefixes}(${methods}|del)${verbSuffixes}$`)
const dashed = /^(?:invoke|send)-?(get|post|put|delete)/

/** The method that a call with such a name makes: `requests.post`, `HttpDelete`, `GetStringAsync`, `Net::HTTP::Put.new`. */
export function methodOfCallee(name: string): string | undefined {
  const parts = name.replace(/[?!]$/, '').split(/\??\.|::|->|&\./)
  const last = parts.at(-1) === 'new' ? parts.at(-2) : parts.at(-1)
  if (last === undefined || last.length > 40) return undefined
  const word = last.replaceAll(/[_@$]/g, '').toLowerCase()
  const [, found] = calling.exec(word) ?? dashed.exec(word) ?? []
  return found === undefined ? undefined : found === 'del' ? 'DELETE' : found.toUpperCase()
}

const constant = /(?:^|[.:])(?:Http|HTTP|Request)?(?:Method|Verb)s?(?:[.:]+|_)?(get|post|put|delete)$/i
const shouted = /(?:^|[.:])(GET|POST|PUT|DELETE)$/

/** The method that a name stands for: `http.MethodPost`, `HttpMethod.Delete`, `POST`. */
export const methodOfName = (name: string): string | undefined =>
  (constant.exec(name) ?? shouted.exec(name))?.[1]?.toUpperCase()

export const methodOfWord = (word: string): string | undefined =>
  /^(?:GET|POST|PUT|DELETE)$/i.test(word) ? word.toUpperCase() : undefined

/** What a method is called where it is one of several settings. */
export const isMethodKey = (key: string): boolean =>
  /^-*(?:method|http_?method|request_?method|http_?mode|verb|type|set_?request_?method|set_?method|curlopt_?customrequest|custom_?request)$/i.test(
    key.slice(Math.max(key.lastIndexOf('.'), key.lastIndexOf(':')) + 1),
  )

/** Calls that take a path of a file. */
export const isFileCall = (name: string): boolean =>
  /(?:^|[.:])(?:open|readFile|readFileSync|ReadFile|writeFile|WriteFile|require|require_relative|import|include|include_once|load|getResource|getResourceAsStream|sendFile|static|exists|existsSync|isfile|isdir|listdir|mkdir|MkdirAll|Glob|glob|File|Stat|copyFile|unlink|embed|archiveArtifacts|stash|insert|template|render)$/.test(
    name,
  )

/** Calls that answer a path instead of asking for it. */
export const isRouteCall = (name: string): boolean =>
  /^(?:app|router|server|mux|blueprint|bp|api_router|express|fastify|Route|routes)(?:[.:]+)(?:get|post|put|delete|all|use|route|any|Handle|HandleFunc|handle)$|(?:^|[.@])(?:HandleFunc|Handle|route|Route|Path|Get|Post|Put|Delete|Request)?(?:Mapping)$|(?:^|[.@:])(?:HandleFunc|Handle|route|Route|Path|HttpGet|HttpPost|HttpPut|HttpDelete)$/.test(
    name,
  )
