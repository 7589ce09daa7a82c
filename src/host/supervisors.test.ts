// States of services, as reported by systemd and launchd.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ExecError } from '../platform/exec.ts'
import { type RunProgram, type ServiceState, supervisors } from './supervisors.ts'

const answering =
  (answer: string | Error): RunProgram =>
  async () => {
    if (answer instanceof Error) throw answer
    return answer
  }

const systemd: readonly (readonly [string, ServiceState])[] = [
  [
    'LoadState=loaded\nActiveState=active\nMainPID=4711\nStatusText=node "mini-1"\n',
    { state: 'running', pid: 4711, text: 'node "mini-1"' },
  ],
  ['LoadState=loaded\nActiveState=activating\nMainPID=12\nStatusText=\n', { state: 'starting', pid: 12 }],
  ['LoadState=loaded\nActiveState=failed\nMainPID=0\nStatusText=\n', { state: 'failed' }],
  ['LoadState=loaded\nActiveState=inactive\nMainPID=0\nStatusText=a=b\n', { state: 'stopped', text: 'a=b' }],
  ['LoadState=not-found\nActiveState=inactive\nMainPID=0\nStatusText=\n', { state: 'not installed' }],
]

const launchd: readonly (readonly [string | Error, ServiceState])[] = [
  ['system/io.svc3.agent = {\n\tactive count = 1\n\tstate = running\n\tpid = 501\n}\n', { state: 'running', pid: 501 }],
  ['system/io.svc3.agent = {\n\tstate = not running\n\tlast exit code = 0\n}\n', { state: 'stopped' }],
  [
    'system/io.svc3.agent = {\n\tstate = spawn scheduled\n\tlast exit code = 1\n}\n',
    { state: 'failed', text: 'exit code 1' },
  ],
  [new ExecError('launchctl', 'failed', 113, 'Could not find service'), { state: 'not installed' }],
]

describe('service of launchd', () => {
  it('a service of launchd loads and unloads the rule for screens with the agent, and runs without it', async () => {
    const calls: string[] = []
    const run: RunProgram = async (program, ...words) => {
      calls.push([program, ...words].join(' '))
      if (words[0] === 'bootout') throw new Error('not loaded')
      return 'state = running\n'
    }
    await supervisors.darwin?.start('agent', run)
    assert.deepEqual(
      calls.filter((call) => call.includes('bootstrap')),
      ['screens', undefined].map(
        (part) =>
          `launchctl bootstrap system /Library/LaunchDaemons/io.svc3.agent${part === undefined ? '' : `.${part}`}.plist`,
      ),
    )
    calls.length = 0
    await supervisors.darwin?.stop('agent', run)
    assert.match(calls.join('\n'), /bootout system\/io\.svc3\.agent\.screens\n\/bin\/sh -c pfctl .* -F all/)
    calls.length = 0
    await supervisors.darwin?.start('server', run)
    assert.doesNotMatch(calls.join('\n'), /screens/)
  })
})

describe('service state', () => {
  for (const [index, [text, state]] of systemd.entries())
    it(`the state of a service by systemd: ${state.state} (${index + 1})`, async () =>
      assert.deepEqual(await supervisors.linux?.state('agent', answering(text)), state))
  for (const [index, [text, state]] of launchd.entries())
    it(`the state of a service by launchd: ${state.state} (${index + 1})`, async () =>
      assert.deepEqual(await supervisors.darwin?.state('agent', answering(text)), state))
})
