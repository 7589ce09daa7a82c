// What the report of an acceptance run tells, and what it must not tell.
import assert from 'node:assert/strict'
import os from 'node:os'
import path from 'node:path'
import { describe, it } from 'node:test'
import { anonymous, isStandIn, markdown, type Report } from './report.ts'

const report: Report = {
  svc3: '3.0.0',
  host: 'Darwin 25.0.0 arm64 Apple M2',
  driver: 'apple (tart 2.36.1)',
  image: 'ghcr.io/cirruslabs/macos-sequoia-base:latest',
  at: '2026-11-20T09:00:00.000Z',
  checks: [{ check: 'sleep', result: 'warning', found: 'after 10 minutes', advice: 'Run a|b' }],
  steps: [
    { step: 'deploy', result: 'passed', seconds: 40, text: 'Running' },
    { step: 'resize', result: 'failed', seconds: 9, text: 'first line\nsecond' },
  ],
}

describe('the report of an acceptance run', () => {
  it('the report of an acceptance run names neither the host, its user nor its addresses', () => {
    const host = os.hostname()
    const text = [
      `ssh to ${host} at 10.0.4.17:22 failed; ${path.join(os.homedir(), 'x/agent.log')}`,
      'vnc://:able-baker@127.0.0.1:5901 of 52:54:00:ab:cd:ef on 127.0.0.1; svc3 3.0.0; REG:5000',
      'rack-7.example.com:5000/team',
      'fe80::1c2d:3ff:fe04:5%en0 and [2001:db8::7]:49160, but not ::1 at 09:00',
    ].join('\n')
    const clean = anonymous(text, { 'rack-7.example.com:5000': 'REGISTRY' })
    assert.doesNotMatch(clean, /10\.0\.4\.17|able-baker|52:54|rack-7|fe80|2001/)
    if (host.length > 2 && host !== 'localhost') assert.ok(!clean.includes(host))
    assert.ok(!clean.includes(`${os.homedir()}/x`))
    assert.match(clean, /127\.0\.0\.1; svc3 3\.0\.0/)
    assert.match(clean, /REGISTRY\/team/)
    assert.match(clean, /not ::1 at 09:00/)
  })

  it('the report of an acceptance run has counts, reasons in one line, and a row for "Verified on"', () => {
    const text = markdown(report)
    assert.match(text, /\| resize \| failed \| 9 \| first line second \|/)
    assert.match(text, /Run a\\\|b/)
    assert.match(text, /1 passed, 1 failed, 0 skipped \| Darwin 25\.0\.0 arm64 Apple M2 \| 2026-11-20 \|/)
    assert.doesNotMatch(text, /stand-in/)
  })

  it('the report of a run on anything but a released tart says that it was a stand-in', () => {
    for (const driver of ['apple (tart 2.35.0-stand-in)', 'simulated (simulated)', 'unknown']) {
      assert.ok(isStandIn({ driver }), driver)
      const text = markdown({ ...report, driver })
      assert.match(text, /This run used a stand-in for tart/)
      assert.match(text, /on the stand-in \| 2026-11-20/)
    }
  })
})
