// What a host finds of the service: whether it is reached, whether versions fit, whether the two clocks agree, and whether
// WebSockets get there.
import { ApiError } from '../../api/errors.ts'
import { connectAgent, upgradeHeader } from '../../api/nodes/agent-connection.ts'
import { getClusterInfo } from '../../api/service/service.ts'
import { httpTransport } from '../../client/http.ts'
import type { Trust } from '../../client/tls.ts'
import { ConnectionError } from '../../client/transport.ts'
import { dialTunnel } from '../../client/tunnel.ts'
import { reasonOf } from '../../platform/reason.ts'
import { versionAdvice } from '../../rules/versions.ts'
import { notOpened, advice as passAdvice } from '../link/not-opened.ts'
import type { Check, Finding } from './doctor.ts'

const timeoutMs = 10_000
const largestAnswer = 1_048_576
/** Tokens are judged with so much patience. */
const refusedSeconds = 60
const oddSeconds = 5

interface Answer {
  readonly version: string
  /** Of the server's clock against ours; undefined where it does not say. */
  readonly aheadSeconds: number | undefined
  readonly roundTripMs: number
}

/** For each address: reaching it and its clock, by one request, and whether a WebSocket gets there, by another. */
export function serverChecks(apiUrls: readonly string[], trust: Trust | undefined, version: string): readonly Check[] {
  if (apiUrls.length === 0)
    return [
      {
        check: 'service',
        look: async () => ({
          result: 'warning',
          found: 'No server address known',
          advice: 'Specify --api-url URL to check the connection and the clock',
        }),
      },
    ]
  return apiUrls.flatMap((apiUrl) => {
    let asked: Promise<Answer> | undefined
    const ask = (signal: AbortSignal): Promise<Answer> => {
      asked ??= askServer(apiUrl, trust, signal)
      return asked
    }
    return [
      { check: 'service', look: (signal) => reached(apiUrl, version, ask(signal)) },
      { check: 'clock', look: (signal) => clock(ask(signal)) },
      { check: 'websocket', look: (signal) => websocket({ apiUrl, trust, version }, ask(signal), signal) },
    ]
  })
}

async function askServer(apiUrl: string, trust: Trust | undefined, signal: AbortSignal): Promise<Answer> {
  const transport = httpTransport({ maxSockets: 1, trust })
  const startMs = performance.now()
  const before = Date.now()
  const response = await transport({
    method: getClusterInfo.method,
    url: `${apiUrl}${getClusterInfo.path}`,
    headers: { accept: 'application/json' },
    body: undefined,
    signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    fresh: false,
  })
  const roundTripMs = performance.now() - startMs
  const text = await response.text(largestAnswer)
  const date = Date.parse(response.header('date') ?? '')
  // The header has whole seconds, cut off: half of one is the best guess.
  const aheadSeconds = Number.isNaN(date) ? undefined : (date + 500 - (before + roundTripMs / 2)) / 1_000
  return { version: versionIn(response.status, text), aheadSeconds, roundTripMs }
}

function versionIn(status: number, text: string): string {
  try {
    const { version } = JSON.parse(text) as { version?: unknown }
    if (status === 200 && typeof version === 'string') return version
  } catch {
    // Not ours.
  }
  throw new Error(`not a svc3 server (status ${status})`)
}

async function reached(apiUrl: string, version: string, answer: Promise<Answer>): Promise<Finding> {
  try {
    const { version: theirs, roundTripMs } = await answer
    const found = `${apiUrl}: version ${theirs}, ${Math.round(roundTripMs)} ms`
    const advice = versionAdvice(version, theirs)
    return advice === undefined ? { result: 'ok', found } : { result: 'warning', found, advice }
  } catch (error) {
    const advice = error instanceof ConnectionError ? error.hint : 'Check the address'
    return { result: 'problem', found: reasonOf(error), advice }
  }
}

async function clock(answer: Promise<Answer>): Promise<Finding> {
  const { aheadSeconds, roundTripMs } = await answer.catch(() => ({ aheadSeconds: undefined, roundTripMs: 0 }))
  if (aheadSeconds === undefined)
    return { result: 'warning', found: 'unknown', advice: 'The server did not send the time' }
  // It looked at its clock at some moment between question and answer: so much is not known.
  const off = Math.max(0, Math.abs(aheadSeconds) - 0.5 - roundTripMs / 2_000)
  const found =
    off < 1 ? 'in sync with the server' : `${off.toFixed(1)} s ${aheadSeconds > 0 ? 'behind' : 'ahead of'} the server`
  if (off < oddSeconds) return { result: 'ok', found }
  const advice = 'Set the time of both by NTP (timedatectl set-ntp true; on macOS: sntp -sS time.apple.com)'
  return { result: off < refusedSeconds ? 'warning' : 'problem', found, advice }
}

/** Without a token: the server refuses it, and says whether the Upgrade arrived. */
async function websocket(
  { apiUrl, trust, version }: { readonly apiUrl: string; readonly trust: Trust | undefined; readonly version: string },
  answer: Promise<Answer>,
  signal: AbortSignal,
): Promise<Finding> {
  // What keeps all requests away is said already.
  const server = await answer.catch(() => undefined)
  if (!server) return { result: 'warning', found: 'unknown', advice: 'The server did not answer' }
  let isReceived = false
  const within = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
  const refused = (headers: object): void => {
    isReceived = upgradeHeader in headers
  }
  try {
    const dialled = { baseUrl: apiUrl, path: connectAgent.path, token: undefined, trust, signal: within, refused }
    ;(await dialTunnel(dialled)).destroy()
    return { result: 'ok', found: 'passed' }
  } catch (thrown) {
    if (isReceived) return { result: 'ok', found: 'passed' }
    const error = within.aborted ? new Error(`No answer within ${timeoutMs / 1_000} s`) : notOpened(apiUrl, thrown)
    if (error instanceof ConnectionError && !error.isTransient)
      return { result: 'problem', found: error.message, advice: error.hint }
    const isOurs = error instanceof ApiError && error.options.foreignStatus === undefined
    // One of another version may not say what arrived.
    if (isOurs && server.version === version)
      return { result: 'problem', found: `The proxy in front of ${apiUrl} removes the Upgrade`, advice: passAdvice }
    const found = isOurs ? 'The server did not receive it, or is older than 3.0.0-alpha.29' : reasonOf(error)
    return {
      result: isOurs ? 'warning' : 'problem',
      found,
      advice: `If a proxy is in front of ${apiUrl}: ${passAdvice}`,
    }
  }
}
