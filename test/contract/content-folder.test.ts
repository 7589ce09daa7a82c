// The content contract on a folder.
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { openContentFolder } from '../../src/images/content/store.ts'
import { age } from '../support/rigs/content-folder.ts'
import { contentContract } from './content.ts'

const root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-content-'))

contentContract({
  name: 'folder',
  async open() {
    const folder = await fs.mkdtemp(path.join(root, 'c'))
    return {
      store: await openContentFolder(folder),
      reopen: () => openContentFolder(folder),
      age: () => age(folder),
      nowMs: Date.now,
    }
  },
  close: () => fs.rm(root, { recursive: true, force: true }),
})
