// Forwards requests about a partial upload to the server that has its bytes on disk. A forwarded request is not forwarded
// again.
import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import { pipeline } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ApiError, conflict } from '../../api/errors.ts'
import type { UploadInput } from '../../api/images/uploads.ts'
import { passedOnHeader } from '../../api/nodes/servers.ts'
import type { Operation } from '../../api/operation.ts'
import { callerKey } from '../../auth/principal.ts'
import { type Clock, timestamp } from '../../platform/clock.ts'
import type { Log } from '../../platform/log.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { ServerRecord } from '../../store/records/server-records.ts'
import { ignoreLost } from '../../store/store.ts'
import { PartialUploads } from '../transfer/partial-uploads.ts'
import { isExpecting } from '../transfer/request-timeout.ts'
import { type Peers, ServerUnreachable } from './server-calls.ts'

export interface ForwardServices {
  readonly collections: Pick<Collections, 'uploadPlaces'>
  /** Only where servers share a store. */
  readonly peers?: Peers | undefined
  readonly clock: Clock
  readonly log: Log
}

type UploadOf = (request: FastifyRequest) => string | undefined
const named: UploadOf = ({ params }) => (params as { upload?: string }).upload

/** The id of the upload that a request is about, by operation. */
const uploadOf: Readonly<Record<string, UploadOf>> = {
  beginUpload: ({ principal, namespace, body }) =>
    principal && PartialUploads.idOf(callerKey(principal), namespace, body as UploadInput),
  getUpload: named,
  continueUpload: named,
  finishUpload: named,
  abandonUpload: named,
}

export const mayBeForwarded = ({ id }: Operation): boolean => uploadOf[id] !== undefined

/** Returns the server to forward the request to. Undefined if this server handles it. */
export function serverOfUpload(
  operation: Operation,
  request: FastifyRequest,
  services: ForwardServices,
): ServerRecord | undefined {
  const { peers, collections } = services
  if (!peers || request.headers[passedOnHeader] !== undefined) return undefined
  const upload = uploadOf[operation.id]?.(request)
  const claim = upload === undefined ? undefined : collections.uploadPlaces.get('', upload)?.value
  return claim === undefined || claim.server === peers.servers.id ? undefined : peers.servers.find(claim.server)
}

/** Claims the upload for this server. Throws Conflict if another live server has claimed it. */
export async function claimUpload({ peers, collections, clock }: ForwardServices, upload: string): Promise<void> {
  if (!peers) return
  const { uploadPlaces } = collections
  const record = { server: peers.servers.id, updatedAt: timestamp(clock.now()) }
  await uploadPlaces.change(uploadPlaces.key('', upload), (before) => {
    if (before && before.server !== record.server && peers.servers.find(before.server))
      throw conflict('uploads', upload, 'was just started on another server', 'Start it again; it continues there')
    return record
  })
}

export async function releaseUpload({ peers, collections }: ForwardServices, upload: string): Promise<void> {
  const entry = peers && collections.uploadPlaces.get('', upload)
  if (entry) await collections.uploadPlaces.delete(entry).catch(ignoreLost)
}

const hopHeaders = new Set(['connection', 'keep-alive', 'transfer-encoding', 'te', 'upgrade', 'expect', 'trailer'])

export async function forwardRequest(
  server: ServerRecord,
  request: FastifyRequest,
  reply: FastifyReply,
  { peers, log }: ForwardServices,
): Promise<FastifyReply> {
  const { raw } = request
  const body = request.body === undefined ? undefined : JSON.stringify(request.body)
  const headers: OutgoingHttpHeaders = { [passedOnHeader]: peers?.servers.id, 'x-request-id': request.id }
  for (const [name, value] of Object.entries(raw.headers)) if (!hopHeaders.has(name)) headers[name] = value
  if (body !== undefined) headers['content-length'] = String(Buffer.byteLength(body))
  let sent: ClientRequest | undefined
  try {
    sent = await peers?.calls.send(server.internalUrl, { method: request.method, path: raw.url ?? '', headers })
  } catch (error) {
    if (!(error instanceof ServerUnreachable)) throw error
    log.warn('a request could not be forwarded', { name: server.id, problem: error.message })
  }
  if (!sent) throw unavailable()
  const forwarded = sent
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    forwarded.once('response', resolve)
    forwarded.once('error', reject)
  })
  if (body !== undefined || raw.complete) forwarded.end(body)
  else {
    if (isExpecting(request)) reply.raw.writeContinue()
    pipeline(raw, forwarded, () => undefined)
  }
  let answer: IncomingMessage
  try {
    answer = await answered
  } catch {
    forwarded.destroy()
    throw unavailable()
  }
  reply.raw.once('close', () => forwarded.destroy())
  for (const [name, value] of Object.entries(answer.headers))
    if (!hopHeaders.has(name) && value !== undefined) reply.header(name, value)
  return reply.code(answer.statusCode ?? 502).send(answer)
}

const unavailable = (): ApiError =>
  new ApiError('ServiceUnavailable', 'The server that holds this upload is not responding', {
    kind: 'uploads',
    retryAfterSeconds: 5,
    hint: 'Try again; if it does not come back, start the upload over',
  })
