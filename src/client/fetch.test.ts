// Responses of fetch are read up to a limit.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { fetchTransport } from './fetch.ts'

it('a response of fetch that is too long is cancelled at the limit', async () => {
  let sent = 0
  let isLeft = false
  const reader = {
    read: async () => {
      sent += 1_000
      return { done: false, value: new Uint8Array(1_000) }
    },
    cancel: async () => {
      isLeft = true
    },
  }
  const response = { status: 200, headers: new Headers(), body: { getReader: () => reader } }
  const transport = fetchTransport({ fetch: async () => response })
  const { signal } = new AbortController()
  const answer = await transport({
    method: 'GET',
    url: 'http://127.0.0.1/',
    headers: {},
    body: undefined,
    signal,
    fresh: false,
  })
  await assert.rejects(answer.text(4_000), /longer than 4000 bytes/)
  assert.deepEqual([sent, isLeft], [5_000, true])
})
