// The calls that captures make to the server, over the connections for content.
import {
  findMissingBlobs,
  finishCapture,
  getCaptureCredentials,
  putBlob,
  type RegistryLogin,
  reportCapture,
} from '../../api/nodes/captures.ts'
import { timeoutAfter } from '../../client/client.ts'
import type { RetryNotice } from '../../oci/registry/waiting.ts'
import { type AgentConnection, isRetriable } from '../link/connection.ts'
import type { Receiver } from './deliver.ts'

export interface CaptureProgress {
  readonly percent: number
  readonly bytes: number
  readonly phase?: string
  /** Only for pushes, like the next two. */
  readonly bytesTotal?: number
  readonly bytesSkipped?: number
  /** Set while the registry does not respond. */
  readonly waiting?: RetryNotice
}

export interface CaptureServer extends Omit<Receiver, 'finish'> {
  finish(id: string, content: string, signal: AbortSignal): Promise<readonly string[]>
  /** With a `problem`, the capture has failed. */
  report(id: string, state: CaptureProgress & { problem?: string }, signal: AbortSignal): Promise<void>
  /** The address and credentials of a push's registry. */
  login(id: string, signal: AbortSignal): Promise<RegistryLogin>
}

/** The server checks every chunk of a large image before it responds. */
const timeoutMs = 120_000
/** For one chunk, which is small. */
const putTimeoutMs = 10 * 60_000

export function captureServer(content: AgentConnection): CaptureServer {
  const turning = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      if (isRetriable(error)) content.turn()
      throw error
    }
  }
  return {
    missing: (digests, signal) =>
      turning(async () => {
        const answer = await content.call(findMissingBlobs, { body: { digests: [...digests] }, timeoutMs }, signal)
        return answer.missing
      }),
    put: (digest, bytes, signal) =>
      turning(async () => {
        const late = new AbortController()
        const timer = setTimeout(() => late.abort(timeoutAfter(putTimeoutMs, content.apiUrl)), putTimeoutMs)
        try {
          await content.upload(putBlob, { digest }, bytes, AbortSignal.any([signal, late.signal]))
        } finally {
          clearTimeout(timer)
        }
      }),
    finish: (capture, digest, signal) =>
      turning(async () => {
        const body = { content: digest }
        return (await content.call(finishCapture, { params: { capture }, body, timeoutMs }, signal)).missing
      }),
    login: (capture, signal) => turning(() => content.call(getCaptureCredentials, { params: { capture } }, signal)),
    report: (capture, state, signal) =>
      turning(async () => void (await content.call(reportCapture, { params: { capture }, body: state }, signal))),
  }
}
