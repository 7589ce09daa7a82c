// Folders in the making: what the dead left goes, what the living make stays, and the first to finish wins.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { makeTemporary, removeStale } from './temporary-folder.ts'

async function place(t: TestContext): Promise<string> {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-temporary-'))
  t.after(() => fs.rm(folder, { recursive: true, force: true }))
  return folder
}

/** A process that makes a temporary folder and then waits for its end. */
async function maker(folder: string): Promise<ReturnType<typeof spawn>> {
  const script = `import { makeTemporary } from ${JSON.stringify(new URL('temporary-folder.ts', import.meta.url).href)}
    await makeTemporary(${JSON.stringify(folder)}, 'thing'); console.log('made'); setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  return child
}

describe('removeStale', () => {
  it('removeStale removes the folder of a killed process, and only that', async (t) => {
    const folder = await place(t)
    await fs.mkdir(path.join(folder, 'other.1-1.abcdef'))
    await using own = await makeTemporary(folder, 'own')
    const child = await maker(folder)
    await removeStale(folder)
    assert.equal((await fs.readdir(folder)).length, 3)
    child.kill('SIGKILL')
    await once(child, 'close')
    await removeStale(folder)
    assert.deepEqual((await fs.readdir(folder)).sort(), [path.basename(own.path), 'other.1-1.abcdef'].sort())
  })

  it('removeStale removes folders of killed processes of earlier versions, on Linux and on a Mac', async (t) => {
    const folder = await place(t)
    for (const started of ['123456', 'undefined']) await fs.mkdir(path.join(folder, `.thing.999999-${started}.abcdef`))
    await removeStale(folder)
    assert.deepEqual(await fs.readdir(folder), [])
  })

  it('removeStale takes a pid that came again for another process', async (t) => {
    const folder = await place(t)
    await fs.mkdir(path.join(folder, `.thing.${process.pid}-1.abcdef`))
    await removeStale(folder)
    assert.deepEqual(await fs.readdir(folder), [])
  })

  it('removeStale has nothing to do where there is no folder', () => removeStale('/nowhere/at/all'))
})

describe('become', () => {
  const make = async (folder: string, text: string, replace: boolean): Promise<void> => {
    await using temporary = await makeTemporary(folder, 'thing')
    await fs.writeFile(path.join(temporary.path, 'text'), text)
    await temporary.become(path.join(folder, 'result'), { replace })
  }

  it('become keeps the first result or replaces it, and leaves nothing else', async (t) => {
    const folder = await place(t)
    const result = (): Promise<string> => fs.readFile(path.join(folder, 'result/text'), 'utf8')
    await make(folder, 'first', false)
    await make(folder, 'second', false)
    assert.equal(await result(), 'first')
    await make(folder, 'third', true)
    assert.equal(await result(), 'third')
    assert.deepEqual(await fs.readdir(folder), ['result'])
  })
})
