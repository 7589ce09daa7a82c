// Join strings: encoding, decoding, and refusal of truncated ones.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { decodeJoinString, encodeJoinString, isJoinString } from './join-string.ts'

const whole = {
  urls: ['https://a.example:8443', 'https://b.example:8443'],
  pin: `${'AB:'.repeat(31)}AB`,
  token: 'eyJhbGciOiJFZERTQSJ9.e30.c2ln',
}

it('a join string comes out as it went in, and needs no quotes in a shell', () => {
  const text = encodeJoinString(whole)
  assert.match(text, /^[\w-]+$/)
  assert.deepEqual(decodeJoinString(text), whole)
  const { pin: _, ...unpinned } = whole
  assert.deepEqual(decodeJoinString(encodeJoinString(unpinned)), unpinned)
})

it('a join string is refused when it was cut off, or is something else', () => {
  const text = encodeJoinString(whole)
  for (let length = 0; length < text.length - 1; length += 7)
    assert.equal(decodeJoinString(text.slice(0, length)), undefined)
  for (const bad of [
    { ...whole, urls: [] },
    { ...whole, urls: ['ftp://x'] },
    { ...whole, pin: 'AB' },
    { ...whole, token: '' },
  ])
    assert.equal(decodeJoinString(encodeJoinString(bad)), undefined)
  assert.equal(decodeJoinString(whole.token), undefined)
  assert.ok(isJoinString(text.slice(0, 20)) && !isJoinString(whole.token))
})
