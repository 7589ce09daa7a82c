// Every page of an SQLite store, and every frame of a write-ahead log that kill -9 left, damaged in turn in every way:
// the next start refuses it, or has every record and every change. It never serves less without an error.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { damageSample, damages } from './sqlite-damage.ts'

for (const isCut of [false, true])
  test(`every damaged ${isCut ? 'frame of a write-ahead log' : 'page'} of SQLite is refused at the start, or every record is there`, {
    timeout: 900_000,
  }, async (t) => {
    using sample = await damageSample(isCut)
    // SQLite has a checksum in each frame: there one way of damaging it is like another.
    const ways = isCut ? ['one byte', 'another page'] : Object.keys(damages)
    let refused = 0
    for (const way of ways)
      for (const [n, place] of sample.pages.entries()) if (await sample.isRefused(place, way, n)) refused++
    const total = ways.length * sample.pages.length
    t.diagnostic(`${refused} of ${total} refused; the others have every record`)
    // Space that nothing uses may hold anything; most of a file is used.
    assert.ok(refused > total / 2, `only ${refused} of ${total} were found`)
  })
