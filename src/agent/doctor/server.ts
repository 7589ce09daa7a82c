// Checks of the service: whether it can be reached, whether versions and clocks agree, and whether WebSockets are passed.
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
import { type Check, type CheckResult, ok, problem, warning } from './doctor.ts'

const timeoutMs = 10_000
const maxAnswerBytes = 1_048_576
/** Servers issue no token to a node whose clock differs by more. */
const refusedSeconds = 60
const warnedSeconds = 5

interface Answer {
  readonly version: string
  /** How far the server's clock is ahead of this host's. Undefined if the server did not send the time. */
  readonly aheadSeconds: number | undefined
  readonly roundTripMs: number
}

/** For each address, one request for the checks of the service and the clock, and one for a WebSocket. */
export function serverChecks(apiUrls: readonly string[], trust: Trust | undefined, version: string): readonly Check[] {
  if (apiUrls.length === 0) return [{ check: 'service', look: async () => noAddress }]
  return apiUrls.flatMap((apiUrl) => {
    let answer: Promise<Answer> | undefined
    const ask = (signal: AbortSignal): Promise<Answer> => {
      answer ??= askServer(apiUrl, trust, signal)
      return answer
    }
    return [
      { check: 'service', look: (signal) => reached(apiUrl, version, ask(signal)) },
      { check: 'clock', look: (signal) => clock(ask(signal)) },
      { check: 'websocket', look: (signal) => websocket({ apiUrl, trust, version }, ask(signal), signal) },
    ]
  })
}

const noAddress = warning('No server address known', 'Specify --api-url URL to check the connection and the clock')

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
  const text = await response.text(maxAnswerBytes)
  const date = Date.parse(response.header('date') ?? '')
  // The header has whole seconds, rounded down: half a second is added on average.
  const aheadSeconds = Number.isNaN(date) ? undefined : (date + 500 - (before + roundTripMs / 2)) / 1_000
  return { version: versionIn(response.status, text), aheadSeconds, roundTripMs }
}

function versionIn(status: number, text: string): string {
  try {
    const { version } = JSON.parse(text) as { version?: unknown }
    if (status === 200 && typeof version === 'string') return version
  } catch {
    // Not a server of svc3.
  }
  throw new Error(`not a svc3 server (status ${status})`)
}

async function reached(apiUrl: string, version: string, answer: Promise<Answer>): Promise<CheckResult> {
  try {
    const { version: theirs, roundTripMs } = await answer
    const found = `${apiUrl}: version ${theirs}, ${Math.round(roundTripMs)} ms`
    const advice = versionAdvice(version, theirs)
    return advice === undefined ? ok(found) : warning(found, advice)
  } catch (error) {
    return problem(reasonOf(error), error instanceof ConnectionError ? error.hint : 'Check the address')
  }
}

async function clock(answer: Promise<Answer>): Promise<CheckResult> {
  const { aheadSeconds, roundTripMs } = await answer.catch(() => ({ aheadSeconds: undefined, roundTripMs: 0 }))
  if (aheadSeconds === undefined) return warning('unknown', 'The server did not send the time')
  // The server read its clock at any moment between request and answer, which limits the precision.
  const off = Math.max(0, Math.abs(aheadSeconds) - 0.5 - roundTripMs / 2_000)
  const found =
    off < 1 ? 'in sync with the server' : `${off.toFixed(1)} s ${aheadSeconds > 0 ? 'behind' : 'ahead of'} the server`
  if (off < warnedSeconds) return ok(found)
  const advice = 'Set the time of both by NTP (timedatectl set-ntp true; on macOS: sntp -sS time.apple.com)'
  return (off < refusedSeconds ? warning : problem)(found, advice)
}

/** Requests an Upgrade without a token: the server's refusal shows whether the Upgrade arrived. */
async function websocket(
  { apiUrl, trust, version }: { readonly apiUrl: string; readonly trust: Trust | undefined; readonly version: string },
  answer: Promise<Answer>,
  signal: AbortSignal,
): Promise<CheckResult> {
  // The check of the service has reported the failure.
  const server = await answer.catch(() => undefined)
  if (!server) return warning('unknown', 'The server did not answer')
  let isReceived = false
  const within = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
  const refused = (headers: object): void => {
    isReceived = upgradeHeader in headers
  }
  try {
    const dialled = { baseUrl: apiUrl, path: connectAgent.path, token: undefined, trust, signal: within, refused }
    ;(await dialTunnel(dialled)).destroy()
    return ok('passed')
  } catch (thrown) {
    if (isReceived) return ok('passed')
    const error = within.aborted ? new Error(`No answer within ${timeoutMs / 1_000} s`) : notOpened(apiUrl, thrown)
    if (error instanceof ConnectionError && !error.isTransient) return problem(error.message, error.hint)
    const isOurs = error instanceof ApiError && error.options.foreignStatus === undefined
    // A server of another version may not send that header.
    if (isOurs && server.version === version)
      return problem(`The proxy in front of ${apiUrl} removes the Upgrade`, passAdvice)
    const advice = `If a proxy is in front of ${apiUrl}: ${passAdvice}`
    return isOurs
      ? warning('The server did not receive it, or is older than 3.0.0-alpha.29', advice)
      : problem(reasonOf(error), advice)
  }
}
