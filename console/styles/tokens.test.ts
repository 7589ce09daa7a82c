// Colors in both themes: text has the contrast that WCAG 2.1 AA requires on every background, and only tokens.css
// defines colors.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'

const read = (name: string): string => fs.readFileSync(path.join(import.meta.dirname, name), 'utf8')
const themes = ['light', 'dark'] as const
type Theme = (typeof themes)[number]

const tokens = new Map<string, Readonly<Record<Theme, string>>>()
for (const [, name = '', light = '', dark = light] of read('tokens.css').matchAll(
  /--([\w-]+): (?:light-dark\()?(#[0-9a-f]{6})(?:, (#[0-9a-f]{6})\))?;/g,
))
  tokens.set(name, { light, dark })

/** Relative luminance, as WCAG defines it. */
function luminance(hex: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5]
    .map((at) => Number.parseInt(hex.slice(at, at + 2), 16) / 255)
    .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

function contrast(front: string, back: string, theme: Theme): number {
  const [one, other] = [front, back].map((name) => {
    const colours = tokens.get(name)
    assert.ok(colours, `no colour --${name}`)
    return luminance(colours[theme])
  }) as [number, number]
  return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05)
}

const planes = ['side-ground', 'ground', 'surface', 'raised', 'sunken', 'hover', 'chosen', 'head', 'button']
const tones = ['good', 'warn', 'bad', 'idle']
/** Text, background, and the required contrast. */
const pairs: readonly (readonly [fronts: readonly string[], backs: readonly string[], least: number])[] = [
  [['text', 'muted'], [...planes, 'accent-soft', 'idle-soft'], 4.5],
  [['link', ...tones], [...planes, 'accent-soft'], 4.5],
  ...tones.map((tone) => [[tone], [`${tone}-soft`], 4.5] as const),
  [['on-accent'], ['accent', 'accent-hover', 'bad-solid', 'bad-solid-hover'], 4.5],
  // Controls, and parts that are distinguished by color.
  [['line-strong', 'accent'], ['ground', 'surface', 'raised', 'sunken'], 3],
  [['fill-used'], ['surface'], 3],
  [['series-1', 'series-2', 'series-3', 'series-4', 'series-5'], ['surface'], 3],
]

describe('the tokens of the console', () => {
  for (const theme of themes)
    it(`the tokens of the console have enough contrast for every text in the ${theme} theme`, () => {
      const weak = pairs.flatMap(([fronts, backs, least]) =>
        fronts.flatMap((front) =>
          backs.flatMap((back) => {
            const ratio = contrast(front, back, theme)
            return ratio >= least ? [] : [`${front} on ${back}: ${ratio.toFixed(2)} of ${least}`]
          }),
        ),
      )
      assert.deepEqual(weak, [])
    })

  it('only tokens.css defines colors', () => {
    const sheets = fs.readdirSync(import.meta.dirname).filter((name) => name.endsWith('.css') && name !== 'tokens.css')
    const stray = sheets.flatMap((name) =>
      [...read(name).matchAll(/^.*(#[0-9a-f]{3,8}\b|rgba?\().*$/gim)].map(([line]) => `${name}: ${line.trim()}`),
    )
    assert.deepEqual(stray, [])
  })
})
