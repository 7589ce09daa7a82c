// Unexpected responses as RegistryErrors, with the registry's own message, redacted.

import type { HttpResponse } from '../../platform/http.ts'
import { isTransientStatus, parseRetryAfter } from '../../platform/retry.ts'
import { RegistryError, type RegistryFault } from '../artifact/errors.ts'
import type { Redactor } from './redact.ts'
import { redactUrl } from './redact.ts'
import { readBounded } from './send.ts'

const faultsByStatus: Readonly<Record<number, RegistryFault>> = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'notFound',
  413: 'tooLarge',
  416: 'session',
  429: 'rateLimited',
}

const words: Readonly<Partial<Record<RegistryFault, string>>> = {
  unauthorized: 'rejected the credentials',
  forbidden: 'denied access',
  notFound: 'does not have it',
  tooLarge: 'does not accept uploads of this size',
  rateLimited: 'limits the request rate',
  unavailable: 'failed',
}

const maxErrorBytes = 16_384

export async function registryError(answer: HttpResponse, doing: string, redactor: Redactor): Promise<RegistryError> {
  const { status, headers, url } = answer
  const said = await readBounded(answer, maxErrorBytes).then(sayingOf, () => '')
  const fault = faultsByStatus[status] ?? (isTransientStatus(status) ? 'unavailable' : 'refused')
  const itsWords = said === '' ? '' : `: "${redactor.words(said)}"`
  const problem = `${doing}: ${redactUrl(url)} ${words[fault] ?? 'refused'} (${status}${itsWords})`
  return new RegistryError(fault, problem, {
    status,
    retryAfterMs: parseRetryAfter(headers['retry-after'], Date.now()),
  })
}

/** Reads `{"errors":[{"code","message"}]}`, and ignores other bodies such as HTML. */
function sayingOf(body: Buffer): string {
  try {
    const { errors } = JSON.parse(body.toString('utf8')) as { errors?: unknown }
    const [first] = Array.isArray(errors) ? (errors as { code?: unknown; message?: unknown }[]) : []
    return [first?.code, first?.message].filter((text) => typeof text === 'string').join(': ')
  } catch {
    return ''
  }
}
