// `npm test`: installs what the tests need from Debian, builds the program, runs every test. In CI a skip is a failure.
import fs from 'node:fs'
import path from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { buildProgram, root } from './build.ts'
import { ensurePackages } from './packages.ts'

/** In this order: first those that take minutes, and last many short ones, so that no core is without work at the end. */
const suites = ['test/e2e/*.test.ts', 'test/contract/*.test.ts', 'test/**/*.test.ts', 'src/**/*.test.ts', 'packages/**/*.test.ts', 'console/**/*.test.ts'] // biome-ignore format: a list
const longSuites = ['test/**/*.long.ts']

const found = (pattern: string): string[] => fs.globSync(pattern, { cwd: root }).sort()

/** Runs the files of these patterns in node's own runner, whose counts are the last lines; returns the exit code. */
export async function runTests(patterns: readonly string[]): Promise<number> {
  const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env
  const stopped = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopped.abort())
  const events = run({
    files: [...new Set(patterns.flatMap(found))].map((file) => path.join(root, file)),
    cwd: root,
    // One more than the cores that CI has: most tests wait for a guest, a browser or a disk now and then.
    concurrency: 3,
    // Also for a hook, which may build the images of guests; and a machine with much else to do is no failure.
    timeout: 600_000,
    // Hundreds of processes load the same sources: stripped of types and compiled once. Where the program itself keeps such.
    env: { ...env, NODE_COMPILE_CACHE: path.join(root, 'dist/cache') },
    signal: stopped.signal,
  })
  const skipped: string[] = []
  let isPassed = false
  events.on('test:pass', ({ file = '', name, skip, todo }) => {
    if (skip !== undefined || todo !== undefined) skipped.push(`${file}: ${name}`)
  })
  // One for each file, and one for all.
  events.on('test:summary', ({ file, success }) => {
    if (file === undefined) isPassed = success
  })
  for await (const text of events.compose(spec)) process.stdout.write(text)
  if (!isPassed) return 1
  if (skipped.length === 0 || !process.env.CI) return 0
  console.error(`In CI a skipped test is a failure:\n${skipped.join('\n')}`)
  return 1
}

if (import.meta.main) {
  const isLong = process.argv.includes('--long')
  await ensurePackages(isLong)
  await buildProgram()
  process.exit(await runTests(isLong ? longSuites : suites))
}
