// `npm test`, `npm run test:full` and `npm run test:long`: builds the program and runs the tests of one suite. A test
// belongs to the suite that its file name says: `x.test.ts` is fast, `x.full.test.ts` and `x.long.test.ts` are not.
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { run } from 'node:test'
import { buildProgram, root } from './build.ts'
import { type Suite, suiteOf } from './packages.ts'
import { report } from './test-report.ts'

/** In this order: those that wait for guests and other processes first, so that no core is without work at the end. */
const folders = ['test/e2e', 'test', 'packages', 'console', 'src']

const suffixes: Readonly<Record<Suite, RegExp>> = {
  fast: /(?<!\.full|\.long)\.test\.ts$/,
  full: /\.full\.test\.ts$/,
  long: /\.long\.test\.ts$/,
}

function filesOf(suite: Suite): string[] {
  const found = folders.flatMap((folder) => fs.globSync(`${folder}/**/*.test.ts`, { cwd: root }).sort())
  return [...new Set(found)].filter((file) => suffixes[suite].test(file))
}

/** Runs these files, given by their paths below the root, in node's own runner; returns the exit code. */
export async function runTests(files: readonly string[]): Promise<number> {
  const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env
  const stopped = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopped.abort())
  const events = run({
    files: files.map((file) => path.join(root, file)),
    cwd: root,
    // One more than there are cores: most tests wait for a guest, a browser or a disk now and then.
    concurrency: os.availableParallelism() + 1,
    // Also for a hook, which may build the images of guests; and a machine with much else to do is no failure.
    timeout: 600_000,
    // Hundreds of processes load the same sources: stripped of types and compiled once. Where the program itself keeps such.
    env: { ...env, NODE_COMPILE_CACHE: path.join(root, 'dist/cache') },
    signal: stopped.signal,
  })
  return report(events, { root, failsOnSkips: Boolean(process.env.CI) })
}

if (import.meta.main) {
  await buildProgram()
  process.exit(await runTests(filesOf(suiteOf(process.argv))))
}
