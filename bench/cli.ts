// How long `bin/svc3` takes, against `node -e 0` of the same Node. Runs are interleaved, so that a busy machine slows
// both alike; the figures are medians.
import { spawn } from 'node:child_process'
import path from 'node:path'
import { recordOf, startFakeService } from '../test/support/api-stand-in.ts'
import { type BenchRow, median, printRows } from './row.ts'

const root = path.resolve(import.meta.dirname, '..')
const program = path.join(root, 'bin', 'svc3')
const node = path.join(root, '.node', 'bin', 'node')
const rounds = 31

interface Case {
  readonly name: string
  readonly words: readonly string[]
  readonly target: number
  /** It asks the service for something. */
  readonly isRequest?: true
}

const cases: readonly Case[] = [
  { name: 'svc3 --help', words: ['--help'], target: 1.3 },
  { name: 'svc3 regcred add --help', words: ['regcred', 'add', '--help'], target: 1.8 },
  { name: 'svc3 regcred list', words: ['regcred', 'list'], target: 1.8, isRequest: true },
  { name: 'svc3 regcred list -o json', words: ['regcred', 'list', '-o', 'json'], target: 1.8, isRequest: true },
  { name: 'svc3 regcred list -o yaml', words: ['regcred', 'list', '-o', 'yaml'], target: 1.8, isRequest: true },
  {
    name: 'svc3 regcred add',
    words: ['regcred', 'add', 'https://ghcr.io', '-u', 'ci', '-p', 'bench-only', '--replace'],
    target: 1.8,
    isRequest: true,
  },
]

/** What a request costs a program that does nothing else: this, less a Node that does nothing at all. */
const bareRequest = `require('node:http').get(
  process.env.SVC3_API_URL + '/api/v1/namespaces/svc-default/secrets/registrycredentials',
  { headers: { authorization: 'Bearer ' + process.env.SVC3_TOKEN } },
  (answer) => answer.resume().on('end', () => process.exit(0)))`

export async function cliBench(): Promise<BenchRow[]> {
  await using service = await startFakeService()
  service.stored.set('svc-default https://ghcr.io', recordOf({ server: 'https://ghcr.io', username: 'ci' }))
  const env = { ...process.env, SVC3_API_URL: service.apiUrl, SVC3_TOKEN: service.token, NODE_EXTRA_CA_CERTS: '' }
  const bare: number[] = []
  const requests: number[] = []
  const programs = cases.map((): number[] => [])
  for (let round = -2; round < rounds; round++) {
    // The first two rounds warm the disk and the compile cache.
    const keep = (times: number[] | undefined, ms: number): unknown => round >= 0 && times?.push(ms)
    keep(bare, await timed(() => runProgram(node, ['-e', '0'], env)))
    keep(requests, await timed(() => runProgram(node, ['-e', bareRequest], env)))
    for (const [index, { words }] of cases.entries()) {
      keep(programs[index], await timed(() => runProgram(program, words, env)))
    }
  }
  const reference = median(bare)
  const requestMs = median(requests) - reference
  return cases.map(({ name, target, isRequest }, index) => {
    const ours = median(programs[index] ?? [])
    return {
      name: isRequest ? `${name}, less the ${requestMs.toFixed(1)} ms that the request costs a bare Node script` : name,
      ours: round1(ours),
      reference: round1(reference),
      unit: 'ms',
      ratio: (isRequest ? ours - requestMs : ours) / reference,
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
