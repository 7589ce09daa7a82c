// Every text of the console is in a table (`texts.ts`, `x-texts.ts`), where all of them are reviewed at once: none is in a page.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { allTexts, textsOf } from '../scripts/texts.ts'

/** Selectors and media queries. */
const isCss = /^(\(prefers-|[a-z]+(, (\.?[a-z-]+|\[role=[a-z]+\]))+$)/

describe('the texts of the console', () => {
  it('the texts of the console are in tables, none in a page', () => {
    const stray = allTexts()
      .filter(({ place }) => place.startsWith('console/') && !/[/-]texts\.ts:/.test(place))
      // Commands and requests are the same in every language.
      .filter(({ place, text }) => !place.startsWith('console/teach/') && !text.startsWith('svc3 '))
      .filter(({ text }) => !isCss.test(text))
      .map(({ place, text }) => `${place}: ${text}`)
    assert.deepEqual(stray, [])
  })

  it('the search for stray texts finds them between tags, in attributes and in strings', () => {
    const code = "export const A = () => <p className='big bold' title='Name'>Delete it{'VM now deleted'}</p>"
    assert.deepEqual(
      textsOf('console/a.tsx', code).map(({ text }) => text),
      ['Name', 'Delete it', 'VM now deleted'],
    )
  })
})
