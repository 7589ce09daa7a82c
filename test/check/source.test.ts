// Types, lint and format of all sources, by the tools themselves; and that no file names a machine or a registry.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { describe, it } from 'node:test'

const root = path.resolve(import.meta.dirname, '../..')

function run(script: string, args: readonly string[]): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [path.join(root, 'node_modules', script), ...args],
      // The compiler is a Go program; less frequent garbage collection saves a fifth of its time.
      { cwd: root, maxBuffer: 16 << 20, env: { ...process.env, GOGC: '400' } },
      (error, stdout, stderr) => resolve({ code: error ? Number(error.code ?? 1) : 0, output: stdout + stderr }),
    )
  })
}

describe('the source', () => {
  for (const project of ['.', 'console']) {
    it(`the source has right types in ${project}`, async () => {
      // Single-threaded: parallel checkers each repeat the shared work, which is most of it.
      const { code, output } = await run('typescript/bin/tsc', ['-p', project, '--singleThreaded'])
      assert.equal(code, 0, output)
    })
  }

  it('the source is linted and formatted (npm run format)', async () => {
    const { code, output } = await run('@biomejs/biome/bin/biome', ['check', '--error-on-warnings', '.'])
    assert.equal(code, 0, output)
  })

  it('the source has a lock file that names no host', () => {
    for (const file of ['package-lock.json', 'scripts/node/package-lock.json']) {
      const text = fs.readFileSync(path.join(root, file), 'utf8')
      assert.ok(!/"resolved"/.test(text), `${file} carries download addresses`)
    }
  })

  it('the source pins every dependency', () => {
    const { dependencies, devDependencies } = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'))
    for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies }))
      assert.match(String(version), /^\d+\.\d+\.\d+$/, name)
  })
})
