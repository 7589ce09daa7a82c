// Names of users: valid email addresses, and those that would fold to the name of another user.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isUserName, userNameOf } from './names.ts'

describe('names of users', () => {
  it('the name of a user is an email address in lower case', () => {
    assert.equal(userNameOf('Ada.Lovelace+x@Example.COM'), 'ada.lovelace+x@example.com')
    assert.equal(userNameOf('Åsa@Example.com'), 'åsa@example.com')
    for (const name of ['admin@localhost', "o'brien@corp.example", 'a_b-c@x-y.example', 'jörg@müller.example'])
      assert.equal(userNameOf(name), name)
  })

  for (const name of [
    '', 'ada', '@b.c', 'a@', 'a@b@c', '"a"@b.c', 'a,b@c.d', '<a@b.c>', 'a b@c.d', 'a@b c', 'a\n@b.c', 'a`@b.c', 'a;b@c.d',
    'a(b)@c.d', 'a\\@b.c', 'a@-b.c', 'a@b.', 'a@b,c', 'a@[::1]', 'a\u200b@b.c', 'a\u202e@b.c', `${'a'.repeat(65)}@b.c`,
    `a@${'b'.repeat(254)}`,
  ]) // biome-ignore format: a list to read
    it(`the name of a user is not ${JSON.stringify(name)}`, () => assert.equal(isUserName(name), false))

  it('an address that folds to another user’s name is refused', () => {
    assert.equal('\u212a'.toLowerCase(), 'k')
    for (const name of ['\u212aim@example.com', 'kim@\u212aorp.example', '\u0130da@example.com'])
      assert.equal(userNameOf(name), undefined)
  })
})
