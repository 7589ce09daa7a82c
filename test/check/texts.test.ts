// The words that people read: phrasings that the style page of CONTRIBUTING.md rules out, in texts for users, comments
// and documents.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { it } from 'node:test'
import { allTexts, textsOf } from '../../scripts/texts.ts'

const all = allTexts()
const root = path.resolve(import.meta.dirname, '../..')

/** Phrasing → what to write in its place. */
const banned: readonly (readonly [RegExp, string])[] = [
  [/\b(is|are|was|were) (asked for|wanted)\b/i, 'requested'],
  [/\bwhat (is|was|are|were) (there|begun|meant|asked|given|stored|missing)\b/i, 'name the thing'],
  [/\bwhat there is\b/i, 'name the thing'],
  [/\bhow (it|they) (stands?|is|are)\b/i, 'status'],
  [/\b(go|goes|going) on\b/i, 'continue'],
  [/\blet(s)? (it|the \w+) go on\b/i, 'resume'],
  [/\bunder way\b/i, 'in progress'],
  [/\bmeanwhile\b/i, 'in the meantime, or nothing'],
  [/\banew\b/i, 'again'],
  [/\banyhow\b/i, 'leave it out'],
  [/\bin vain\b/i, 'without success'],
  [/\bany more\b/i, 'no longer'],
  [/\b(is|are|was) (not )?there( any more)?[.,;:]?$/i, 'exists, not found'],
  [/\bis gone\b|\bare gone\b/i, 'was deleted, no longer exists'],
  [/\bvouch/i, 'the certificate is self-signed, is not trusted'],
  [/\bleft out\b/i, 'optional, omitted'],
  [/\bmade up\b/i, 'generated'],
  [/\b(ask|look|repeat) (it )?again\b/i, 'try again'],
  [/\bis not more\b/i, 'choose a larger one'],
  [/\bof it is left\b/i, 'was deleted'],
  [/\bso manieth\b|\bso many of\b/i, 'every Nth'],
  [/\bwithout a word\b|\bsays no word\b/i, 'without an error'],
  [/\bwith right\b|\bas it is\b/i, 'unchanged'],
  [/\btakes? a login\b/i, 'accepts SSH'],
  [/\bthere is no such\b/i, 'not found'],
  [/\bplease\b|[A-Za-z]!$/i, 'leave it out'],
  [/\bone of (them|those|these) is\b/i, 'name the thing'],
  [/\bnobody\b|\bsomebody\b/i, 'name who, or use the passive that people use (unused, unclaimed)'],
  [/\bof ours\b|\bof its own\b/i, 'leave it out, or: own, separate'],
  [/\bwhoever\b/i, 'name who: the caller, users who …'],
  [/\b(of|for|to|from|with) who\b/i, 'of the user, for callers that …'],
  [/(^|[.:;] |\/\/ |\*\* )who (asks|waits|wants|needs|reads|logs)\b/i, 'callers that …, users who …'],
  [/\bits like\b/i, 'other clients of that kind, or nothing'],
  [/\bthat there is\b/i, 'all the …, available'],
  [/\bis an end\b/i, 'name the thing'],
  [/\btells? of\b/i, 'reports'],
  [/\bhears? of\b/i, 'learns of, receives, notices'],
  [/\bwithout end\b/i, 'endless, unlimited, too long'],
  [/\b(is|are|was|were) over(?=[.,;:)]|$| (by|when|and|or|for|before|once)\b)/i, 'has ended, has passed'],
  [/\bso long\b(?! as)/i, 'this long, for that time'],
  [/\b(vm|image|node|namespace|iso) "\{\}"/, 'VM {}, Image {}: the name as people type it'],
]

it('no text that people read has a phrasing that the style page rules out', () => {
  const found = all.flatMap(({ surface, text, place }) =>
    banned.filter(([phrase]) => phrase.test(text)).map(([, better]) => `${place} (${surface}): "${text}" → ${better}`),
  )
  assert.deepEqual(found, [])
})

it('messages and hints begin as sentences do', () => {
  const found = all
    // Clients of 2.4.x match the words of the gateway.
    .filter(({ place }) => !place.startsWith('src/server/legacy/'))
    .filter(({ isMessage, text }) => isMessage && !/^[^a-z]|^(svc3|etcd|config\.json|macOS)\b/.test(text))
    .map(({ place, text }) => `${place}: "${text}"`)
  assert.deepEqual(found, [])
})

it('the search for messages goes through choices, constants and helpers, and finds single words', () => {
  const code = `
    const refused = (what: string, next: string) => new ApiError('Conflict', what, { hint: next })
    const reason = error ?? 'one is bad'
    if (x) throw new Interrupted('two')
    if (y) throw new Failure(reason, z ? 'three' : \`four\${z}\`)
    if (z) throw new ConnectionError('lost', url, (isLate ? 'five' : 'six') + text, 'seven')
    if (v) throw refused('eight', 'nine')
    throw invalid('vms', [{ field: 'cpu', reason: 'Bad', message: 'cpu is bad' }], 'ten')`
  assert.deepEqual(
    textsOf('src/x.ts', code).flatMap(({ isMessage, text }) => (isMessage ? [text] : [])),
    ['one is bad', 'two', 'three', 'four{}', 'five', 'six', 'seven', 'eight', 'nine', 'ten'],
  )
})

it('the search for texts goes between tags, into attributes and into strings', () => {
  const code = "export const A = () => <p className='big bold' title='Name'>Delete it{'VM now deleted'}</p>"
  assert.deepEqual(
    textsOf('console/a.tsx', code).map(({ text }) => text),
    ['Name', 'Delete it', 'VM now deleted'],
  )
})

it('no page has a phrasing that the style page rules out', () => {
  // CONTRIBUTING.md has the table of phrasings before and after.
  const pages = fs.globSync(['*.md', 'docs/**/*.md'], {
    cwd: root,
    exclude: ['CONTRIBUTING.md', 'docs/decisions/2026-11-16-one-http-client.md'],
  })
  const found = pages.flatMap((page) =>
    fs
      .readFileSync(path.join(root, page), 'utf8')
      .split('\n')
      .flatMap((line, index) =>
        banned
          .filter(([phrase]) => phrase.test(line))
          .map(([, better]) => `${page}:${index + 1}: "${line}" → ${better}`),
      ),
  )
  assert.deepEqual(found, [])
})

/** The comment on a line of TypeScript, or the whole line of a README. */
function commentOn(file: string, line: string): string {
  if (file.endsWith('.md')) return line
  return /^\s*(\/\/.*|\/?\*.*)/.exec(line)?.[1] ?? /\s(\/\/ .*)/.exec(line)?.[1] ?? ''
}

const commented = fs
  .globSync(
    ['{src,console,packages,bench,scripts,test}/**/*.{ts,tsx,mjs}', '{src,console,packages,test}/**/README.md'],
    { cwd: root, exclude: ['**/node_modules', 'test/fixtures/**', 'test/check/texts.test.ts'] },
  )
  .flatMap((file) =>
    fs
      .readFileSync(path.join(root, file), 'utf8')
      .split('\n')
      .flatMap((line, index) =>
        banned
          .filter(([phrase]) => phrase.test(commentOn(file, line)))
          .map(([, better]) => `${file}:${index + 1}: ${line.trim()} → ${better}`),
      ),
  )

it('no comment and no README of a room has a phrasing that the style page rules out', () => {
  assert.deepEqual(commented, [])
})
