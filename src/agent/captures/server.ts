// What captures say to the server, over the connections that are for large content.

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

/** How far a capture is. */
export interface CaptureProgress {
  readonly percent: number
  readonly bytes: number
  /** What is being done, or waited for. */
  readonly phase?: string
  /** push only. */
  readonly bytesTotal?: number
  readonly bytesSkipped?: number
  /** push only: the registry does not answer. */
  readonly waiting?: RetryNotice
}

export interface CaptureServer extends Omit<Receiver, 'finish'> {
  finish(id: string, content: string, signal: AbortSignal): Promise<readonly string[]>
  /** `problem`: it failed for good. */
  report(id: string, state: CaptureProgress & { problem?: string }, signal: AbortSignal): Promise<void>
  /** How the registry of a push is reached, and as whom. */
  login(id: string, signal: AbortSignal): Promise<RegistryLogin>
}

/** A server looks at every chunk of a large image before it answers. */
const timeoutMs = 120_000
/** A chunk is small; a connection that takes longer is dead, or as good as that. */
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
