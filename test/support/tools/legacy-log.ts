// An access log of 2.4.x and 3.0, with the number of each legacy call in it.

interface LegacyLog {
  readonly block: Buffer
  /** In one block. */
  readonly lines: number
  readonly calls: ReadonlyMap<string, number>
}

type Request = readonly [call: string | undefined, method: string, path: (index: number) => string]
const requests: readonly Request[] = [
  ['GET /resources/vm/list', 'GET', () => '/resources/vm/list'],
  ['GET /resources/vm/status/{vm}', 'GET', (index) => `/resources/vm/status/vm-${index}`],
  ['POST /resources/vm/deploy', 'POST', () => '/resources/vm/deploy'],
  ['POST /token', 'POST', () => '/token'],
  [undefined, 'GET', (index) => `/api/v1/namespaces/svc-default/vms/vm-${index}`],
  [undefined, 'GET', () => '/api/v1/namespaces/svc-default/nodes?watch=true'],
  [undefined, 'GET', (index) => `/static/resources/app-${index}.css`],
  [undefined, 'POST', () => '/oauth/token'],
]

/** Half of the lines are legacy calls; every tenth line is JSON. */
export function legacyLog(bytes: number): LegacyLog {
  const texts: string[] = []
  const calls = new Map<string, number>()
  let length = 0
  for (let index = 0; length < bytes; index++) {
    const [call, method, path] = requests[(index * 7 + (index >> 3)) % requests.length] as Request
    const text =
      index % 10 === 9
        ? `{"time":"2026-11-15T09:00:00Z","method":"${method}","path":"${path(index)}","status":200,"agent":"curl/7.88.1"}\n`
        : `10.0.${index % 256}.7 - - [15/Nov/2026:09:00:00 +0000] "${method} ${path(index)} HTTP/1.1" 200 ${index % 9_999} "-" "curl/7.88.1"\n`
    if (call !== undefined) calls.set(call, (calls.get(call) ?? 0) + 1)
    texts.push(text)
    length += text.length
  }
  return { block: Buffer.from(texts.join('')), lines: texts.length, calls }
}
