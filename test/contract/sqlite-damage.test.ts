// A sample of what the full test of the same name does: pages and frames chosen by a seed of this run, which is told.
import { test } from 'node:test'
import { damageSample, damages, randomFrom } from './sqlite-damage.ts'

const tries = 8

for (const isCut of [false, true])
  test(`a damaged ${isCut ? 'write-ahead log' : 'page'} of SQLite is refused at the start, or every record is there (sample)`, async () => {
    using sample = await damageSample(isCut)
    const seed = Date.now() % 1_000_000
    const random = randomFrom(seed)
    const names = Object.keys(damages)
    for (let n = 0; n < tries; n++) {
      const place = sample.pages[random(sample.pages.length)]
      if (place) await sample.isRefused(place, names[random(names.length)] ?? '', random(1_000_000))
    }
  })
