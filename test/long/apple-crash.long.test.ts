// The driver for Apple silicon is killed at every point of its work, on the stand-in for tart.
import { describe, it } from 'node:test'
import { type CrashStep, dieAt } from '../contract/apple-crash.ts'

const points: Readonly<Record<CrashStep, readonly string[]>> = {
  start: ['apple-noted', 'apple-spawned', 'apple-up', 'apple-complete'],
  stop: ['apple-ending'],
  revert: ['apple-laid-out', 'apple-recorded'],
  capture: ['apple-capturing', 'apple-still', 'apple-cloned', 'apple-went-on', 'apple-captured'],
}

describe('a driver for Apple silicon that is killed', { timeout: 900_000 }, () => {
  for (const [step, names] of Object.entries(points))
    for (const point of names) it(`in a ${step}, at ${point}`, () => dieAt(step as CrashStep, point))
})
