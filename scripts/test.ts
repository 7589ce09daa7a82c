// `npm test`: installs what the tests need from Debian, builds the program, runs every test. In CI a skip is a failure.
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { buildProgram, root } from './build.ts'
import { ensurePackages } from './packages.ts'

const suites = ['src/**/*.test.ts', 'console/**/*.test.ts', 'test/**/*.test.ts']
const longSuites = ['test/**/*.long.ts']

/** Runs the files of these patterns in node's own runner, whose counts are the last lines; returns the exit code. */
export async function runTests(patterns: readonly string[]): Promise<number> {
  const skips = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-test-')), 'skipped')
  const args = [
    '--test',
    // One more than the cores that CI has: most tests wait for a guest, a browser or a disk now and then.
    '--test-concurrency=3',
    // Also for a hook, which may build the images of guests; and a machine with much else to do is no failure.
    '--test-timeout=600000',
    '--test-reporter=spec',
    '--test-reporter-destination=stdout',
  ]
  args.push(`--test-reporter=${path.join(root, 'scripts/skips.ts')}`, `--test-reporter-destination=${skips}`)
  const code = await run([...args, ...patterns])
  const skipped = fs.existsSync(skips) ? fs.readFileSync(skips, 'utf8').trim() : ''
  if (code === 0 && skipped !== '' && process.env.CI) {
    console.error(`In CI a skipped test is a failure:\n${skipped}`)
    return 1
  }
  return code
}

function run(args: readonly string[]): Promise<number> {
  const { NODE_EXTRA_CA_CERTS: _, NODE_TEST_CONTEXT: __, ...env } = process.env
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, { cwd: root, stdio: 'inherit', env })
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
    child.on('exit', (code) => resolve(code ?? 1))
  })
}

if (import.meta.main) {
  const isLong = process.argv.includes('--long')
  await ensurePackages(isLong)
  await buildProgram()
  process.exit(await runTests(isLong ? longSuites : suites))
}
