// How long `bin/svc3` takes beside a bare script that makes the same request.
import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { startFakeService } from '../test/support/stand-ins/api.ts'
import { vmOf } from '../test/support/stand-ins/fleet.ts'
import { inTurns, msOf, sized } from './measure.ts'
import { type BenchRow, compared } from './row.ts'

const exec = promisify(execFile)
const root = path.resolve(import.meta.dirname, '..')
const program = path.join(root, 'bin', 'svc3')
const node = path.join(root, '.node', 'bin', 'node')
/** The warm-up fills the disk's cache and the compile cache. */
const turns = { rounds: sized(31, 1), warmUp: sized(2, 0) }

/** The least that anybody could write who wants the VMs of a namespace. */
const bareList = `
const http = require('node:http')
const { SVC3_API_URL, SVC3_TOKEN } = process.env
const headers = { authorization: 'Bearer ' + SVC3_TOKEN }
http.get(SVC3_API_URL + '/api/v1/namespaces/svc-default/vms', { headers }, (answer) => {
  let text = ''
  answer.on('data', (chunk) => (text += chunk))
  answer.on('end', () => {
    for (const { name, ip, ssh, vnc, screenshare, status } of JSON.parse(text).items)
      console.log([name, ip, ssh, vnc, screenshare, status].join('\\t'))
  })
})`

const compares = [
  { line: 'vm list', atMost: 2, script: bareList, reference: 'a bare script that makes the same request' },
  { line: '--help', script: '0', reference: '`node -e 0`' },
]

export async function bench(): Promise<BenchRow[]> {
  await using service = await startFakeService()
  const vms = { items: Array.from({ length: 20 }, (_, index) => vmOf({ name: `vm-${index}` })) }
  service.pages.set('/api/v1/namespaces/svc-default/vms', vms)
  const env = { ...process.env, SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.token, NODE_EXTRA_CA_CERTS: '' }
  const run = (file: string, args: readonly string[]) => msOf(() => exec(file, args, { env }))
  const rows: BenchRow[] = []
  for (const { line, script, ...about } of compares) {
    const figures = await inTurns(
      turns,
      () => run(program, line.split(' ')),
      () => run(node, ['-e', script]),
    )
    rows.push(compared({ ...about, what: `\`svc3 ${line}\``, unit: 'ms' }, ...figures))
  }
  return rows
}
