// How long `bin/svc3` takes, against `node -e 0` of the same Node, and `svc3 vm list` against a bare script that makes
// the same request. Each run is compared with one of the reference right before it, so that a busy machine slows both
// alike; the figures are medians.
import { spawn } from 'node:child_process'
import path from 'node:path'
import { addRegistryCredential, listRegistryCredentials } from '../src/api/access/registry-credentials.ts'
import { type Client, createClient } from '../src/client/client.ts'
import { httpTransport } from '../src/client/http.ts'
import { recordOf, startFakeService } from '../test/support/stand-ins/api.ts'
import { vmOf } from '../test/support/stand-ins/fleet.ts'
import { type BenchRow, median, printRows } from './row.ts'

const root = path.resolve(import.meta.dirname, '..')
const program = path.join(root, 'bin', 'svc3')
const node = path.join(root, '.node', 'bin', 'node')
const rounds = 31

const params = { namespace: 'svc-default' }

interface Case {
  readonly name: string
  readonly words: readonly string[]
  readonly target: number
  /** What it asks of the service: not counted, at the pace of a Node that is warm. */
  readonly request?: (client: Client) => Promise<unknown>
  /** In place of `0`: what a Node does that the command is compared with. */
  readonly script?: string
}
const list = (client: Client): Promise<unknown> => client.listAll(listRegistryCredentials, { params })
const input = { server: 'https://ghcr.io', username: 'ci', password: 'bench-only', replace: true }
const add = (client: Client): Promise<unknown> => client.call(addRegistryCredential, { params, body: input })

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

const cases: readonly Case[] = [
  { name: 'svc3 vm list, against a bare script', words: ['vm', 'list'], target: 1.6, script: bareList },
  { name: 'svc3 --help', words: ['--help'], target: 1.3 },
  { name: 'svc3 regcred add --help', words: ['regcred', 'add', '--help'], target: 1.8 },
  { name: 'svc3 regcred list', words: ['regcred', 'list'], target: 1.8, request: list },
  { name: 'svc3 regcred list -o json', words: ['regcred', 'list', '-o', 'json'], target: 1.8, request: list },
  { name: 'svc3 regcred list -o yaml', words: ['regcred', 'list', '-o', 'yaml'], target: 1.8, request: list },
  {
    name: 'svc3 regcred add',
    words: ['regcred', 'add', 'https://ghcr.io', '-u', 'ci', '-p', 'bench-only', '--replace'],
    target: 1.8,
    request: add,
  },
]

export async function cliBench(): Promise<BenchRow[]> {
  await using service = await startFakeService()
  const vms = { items: Array.from({ length: 20 }, (_, index) => vmOf({ name: `vm-${index}` })) }
  service.pages.set('/api/v1/namespaces/svc-default/vms', vms)
  service.stored.set('svc-default https://ghcr.io', recordOf({ server: 'https://ghcr.io', username: 'ci' }))
  const env = { ...process.env, SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.token, NODE_EXTRA_CA_CERTS: '' }
  const client = createClient({ baseUrl: service.apiUrl, token: service.token, transport: httpTransport() })
  const bare = cases.map((): number[] => [])
  const programs = cases.map((): number[] => [])
  const requests = cases.map((): number[] => [])
  for (let round = -2; round < rounds; round++) {
    // The first two rounds warm the disk and the compile cache.
    const keep = (times: number[] | undefined, ms: number): unknown => round >= 0 && times?.push(ms)
    for (const [index, { words, request, script = '0' }] of cases.entries()) {
      keep(bare[index], await timed(() => runProgram(node, ['-e', script], env)))
      keep(programs[index], await timed(() => runProgram(program, words, env)))
      if (request) keep(requests[index], await timed(() => request(client)))
    }
  }
  return cases.map(({ name, target, request }, index) => {
    const ours = programs[index] ?? []
    const reference = bare[index] ?? []
    const requestMs = request ? median(requests[index] ?? []) : 0
    return {
      name,
      ours: round1(median(ours)),
      reference: round1(median(reference)),
      unit: 'ms',
      ratio: median(ours.map((ms, round) => (ms - requestMs) / (reference[round] ?? Number.NaN))),
      target,
      better: 'lower',
    }
  })
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}

function runProgram(command: string, words: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, words, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    child.stdout.resume()
    child.stderr.on('data', (chunk) => {
      said += chunk
    })
    child.on('error', reject)
    child.on('close', (code) =>
      code === 0 ? resolve() : reject(new Error(`${words.join(' ')} exited ${code}: ${said}`)),
    )
  })
}

const round1 = (value: number): number => Math.round(value * 10) / 10

if (import.meta.main) printRows(await cliBench())
