// The check of a runner's guest image: the script, and findings from its output.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { it } from 'node:test'
import { checkScript, imageFindings, isCheckOver } from './image-check.ts'

const nowMs = Date.parse('2026-11-17T09:00:00Z')
const expected = { folder: '/opt/actions-runner', user: 'ci', host: 'github.com' }
const all = { folder: 'yes', start: 'yes', listener: 'yes', user: 'yes', su: 'yes', poweroff: 'yes', name: 'yes' }
const consoleOf = (more: object, clock = nowMs / 1_000): string =>
  [
    '[    0.1] booting',
    // Other boot messages in between.
    ...Object.entries({ ...all, ...more }).map(([key, value]) => `login: svc3-check ${key} ${value}\r`),
    `svc3-check clock ${clock}\r`,
    'svc3-check end\r',
  ].join('\n')

it('an image that has all of a runner is well, and each thing that it lacks is named with what to do', () => {
  const messages = (console: string) =>
    imageFindings(console, expected, nowMs)?.map(({ ok, message }) => `${ok} ${message}`)
  assert.deepEqual(messages(consoleOf({})), ['true First-boot script ran; /opt/actions-runner has the runner'])
  const none = { folder: 'no', start: 'no', listener: 'no' }
  assert.deepEqual(messages(consoleOf(none)), ['false Folder /opt/actions-runner is missing'])
  assert.match(String(messages(consoleOf({ start: 'no', listener: 'no' }))), /^false .*run\.sh is missing/)
  assert.match(String(messages(consoleOf({ user: 'no', poweroff: 'no' }))), /User ci is missing.*Neither poweroff/)
  assert.match(
    String(messages(consoleOf({ name: 'no' }, nowMs / 1_000 - 600))),
    /does not find github\.com.*10 min behind/,
  )
  assert.equal(messages('[    0.1] booting\nsvc3-check folder yes\n'), undefined)
})

it('the script that looks into an image runs in a shell and says what it found', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'svc3-image-check-'))
  try {
    const runner = path.join(folder, 'runner')
    fs.mkdirSync(path.join(runner, 'bin'), { recursive: true })
    for (const file of ['run.sh', 'bin/Runner.Listener']) fs.writeFileSync(path.join(runner, file), '', { mode: 0o755 })
    const console = path.join(folder, 'console')
    const here = { folder: runner, host: 'localhost' }
    // Without the last line, which would power off this host.
    const script = checkScript(here)
      .replaceAll('> /dev/console', `>> ${console}`)
      .replace(/^poweroff 2.*$/m, '')
    // Containers have no poweroff.
    fs.writeFileSync(path.join(folder, 'poweroff'), '', { mode: 0o755 })
    execFileSync('sh', { input: script, env: { ...process.env, PATH: `${folder}:${process.env.PATH}` } })
    const said = fs.readFileSync(console, 'utf8')
    assert.ok(isCheckOver(said), said)
    assert.equal(imageFindings(said, here, Date.now())?.[0]?.ok, true, said)
  } finally {
    fs.rmSync(folder, { recursive: true })
  }
})
