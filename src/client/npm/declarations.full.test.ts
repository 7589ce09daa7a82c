// The declarations that the package gets are printed; the compiler holds them to the types that are mapped from the
// table.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { it } from 'node:test'
import { clientTypes } from '../../../scripts/client-types.ts'
import { exec } from '../../platform/exec.ts'

const root = path.resolve(import.meta.dirname, '../../..')

const check = `
import type * as printed from './operations.ts'
import type * as mapped from '${path.join(root, 'src/client/npm/operations.ts')}'

type Same<One, Other> = [One, Other] extends [Other, One] ? true : false
type Input<M, Id extends keyof M> = M[Id] extends (...input: infer I) => unknown ? NonNullable<I[0 & keyof I]> : never
type Answer<M, Id extends keyof M> = M[Id] extends (...input: never) => Promise<infer A> ? A : never
type Wrong = {
  [Id in keyof mapped.Methods & keyof printed.Methods]: [Answer<printed.Methods, Id>, Input<printed.Methods, Id>] extends [
    Answer<mapped.Methods, Id>,
    Input<mapped.Methods, Id>,
  ]
    ? never
    : Id
}[keyof mapped.Methods & keyof printed.Methods]
const methods: [Wrong] extends [never] ? true : Wrong = true
const ids: Same<keyof mapped.Methods, keyof printed.Methods> = true
const watchable: Same<mapped.Watchable, printed.Watchable> = true
const lists: Same<mapped.Lists, printed.Lists> = true
const streams: Same<keyof mapped.Streams, keyof printed.Streams> = true
void [ids, lists, methods, streams, watchable]
`

it('svc3/client declares the inputs and answers of the operation table', async () => {
  const folder = await fs.mkdtemp(path.join(root, 'dist.client-types-'))
  try {
    await fs.writeFile(path.join(folder, 'operations.ts'), clientTypes())
    await fs.copyFile(path.join(import.meta.dirname, 'options.ts'), path.join(folder, 'options.ts'))
    await fs.writeFile(path.join(folder, 'check.ts'), check)
    const {
      incremental: _,
      tsBuildInfoFile: __,
      ...compilerOptions
    } = JSON.parse(await fs.readFile(path.join(root, 'tsconfig.json'), 'utf8')).compilerOptions
    await fs.writeFile(path.join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['check.ts'] }))
    const tsc = path.join(root, 'node_modules/typescript/bin/tsc')
    const { stdout } = await exec(process.execPath, [tsc, '-p', folder], { cwd: root, timeoutMs: 300_000 })
    assert.equal(stdout, '')
  } finally {
    await fs.rm(folder, { recursive: true, force: true })
  }
})
