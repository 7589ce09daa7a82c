// The arguments and environment of the browser, with a stand-in for the program that opens it.
import assert from 'node:assert/strict'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { it } from 'node:test'
import { openBrowser } from './browser.ts'

it('the browser gets the address, and no variables of svc3', async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-browser-'))
  try {
    const seen = path.join(folder, 'seen')
    const script = `#!/bin/sh\n{ echo "$@"; env; } > "${seen}.part"\nmv "${seen}.part" "${seen}"\n`
    for (const name of ['open', 'xdg-open']) fs.writeFileSync(path.join(folder, name), script, { mode: 0o755 })
    const ours = { SVC3_TOKEN: 'leak-1', SVC3_MASTER_KEY: 'leak-2', ORKA_TOKEN: 'leak-3', SVC3_ANYTHING: 'leak-4' }
    const env = { PATH: `${folder}:${process.env.PATH}`, DISPLAY: ':7', ...ours }
    const there = Promise.withResolvers<void>()
    const watcher = fs.watch(folder, (_event, name) => name === 'seen' && there.resolve())
    openBrowser({ env }, 'http://127.0.0.1:1/page?a=b&c=d')
    await there.promise
    watcher.close()
    const text = fs.readFileSync(seen, 'utf8')
    assert.match(text, /^http:\/\/127\.0\.0\.1:1\/page\?a=b&c=d\n/)
    assert.match(text, /^DISPLAY=:7$/m)
    assert.doesNotMatch(text, /leak|SVC3_|ORKA_/)
  } finally {
    fs.rmSync(folder, { recursive: true })
  }
})
