// The power button: pressed again for a guest that did not listen yet, and released when the caller aborts.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { askToPowerDown } from './control.ts'
import type { Qmp } from './qmp.ts'

function guest(presses: number) {
  const said: string[] = []
  const { promise: off, resolve: powerOff } = Promise.withResolvers<boolean>()
  const qmp: Qmp = {
    execute: async (command) => {
      said.push(command)
      if (said.filter((one) => one === 'system_powerdown').length === presses) powerOff(true)
      return { status: 'running' }
    },
    waitFor: () => off,
    closed: new Promise(() => undefined),
    close: () => undefined,
  }
  return { qmp, said }
}

describe('askToPowerDown', () => {
  it('askToPowerDown repeats the request until the guest reacts', async () => {
    const { qmp, said } = guest(3)
    await askToPowerDown(qmp, { graceSeconds: 60 }, 5)
    const asked = ['query-status', 'cont', 'system_powerdown', 'system_powerdown', 'system_powerdown']
    assert.deepEqual(said, asked)
    await new Promise((resolve) => setTimeout(resolve, 30))
    assert.deepEqual(said, asked, 'and then no more')
  })

  it('askToPowerDown ends at once when it is aborted, also if QEMU does not answer', async () => {
    const { qmp } = guest(Number.POSITIVE_INFINITY)
    await askToPowerDown(qmp, { graceSeconds: 60, signal: AbortSignal.timeout(10) }, 5)
    const deaf: Qmp = { ...qmp, execute: () => new Promise(() => undefined) }
    await askToPowerDown(deaf, { graceSeconds: 60, signal: AbortSignal.timeout(10) }, 5)
    const { qmp: untouched, said } = guest(1)
    await askToPowerDown(untouched, { graceSeconds: 60, signal: AbortSignal.abort() }, 5)
    await askToPowerDown(untouched, { graceSeconds: 0 }, 5)
    assert.deepEqual(said, [])
  })
})
