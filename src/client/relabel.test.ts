// Labels of a VM changed by several callers at once: none are lost, and a record that keeps changing fails after some
// tries.
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ApiError } from '../api/errors.ts'
import { operations } from '../api/index.ts'
import type { Operation } from '../api/operation.ts'
import type { Client, RawInput } from './client.ts'
import { parseLabelChange, relabelled, relabelVm } from './relabel.ts'

/**
 * A record of labels that refuses another version than its own. `othersAt`: changes by others between a read and a
 * write.
 */
function record(labels: Record<string, string>, othersAt: (turn: number) => Record<string, string> | undefined) {
  const state = { labels, rev: 1, writes: 0 }
  const call = async (operation: Operation, { body }: RawInput): Promise<unknown> => {
    if (operation.id === operations.getVm.id)
      return { ...operations.getVm.example.response, labels: state.labels, resourceVersion: String(state.rev) }
    const others = othersAt(state.writes++)
    if (others) Object.assign(state, { labels: { ...state.labels, ...others }, rev: state.rev + 1 })
    const { labels: next, resourceVersion } = body as { labels: Record<string, string>; resourceVersion: string }
    if (resourceVersion !== String(state.rev)) throw new ApiError('Conflict', 'VM demo changed', {})
    Object.assign(state, { labels: next, rev: state.rev + 1 })
    return { labels: next }
  }
  return { state, client: { call } as unknown as Client }
}

const demo = { namespace: 'svc-default', name: 'demo', changes: [{ name: 'team', value: 'ios' }, { name: 'old' }] }

describe('labels of a VM', () => {
  it('labels of a VM that other callers set between the read and the write are kept', async () => {
    const { state, client } = record({ old: '1' }, (turn) => (turn < 3 ? { [`theirs-${turn}`]: 'x' } : undefined))
    const { labels } = await relabelVm(client, demo)
    assert.deepEqual(labels, { team: 'ios', 'theirs-0': 'x', 'theirs-1': 'x', 'theirs-2': 'x' })
    assert.deepEqual([state.labels, state.writes], [labels, 4])
  })

  it('labels of a VM that keeps changing fail with the error of the service', async () => {
    const { state, client } = record({}, (turn) => ({ turn: String(turn) }))
    await assert.rejects(relabelVm(client, demo), /VM demo changed/)
    assert.equal(state.writes, 20)
  })

  it('labels of a VM are checked after each read, and not written if the check fails', async () => {
    const { state, client } = record({}, (turn) => (turn === 0 ? { team: 'web' } : undefined))
    const check = (labels: Readonly<Record<string, string>>): void => assert.equal(labels.team, undefined)
    await assert.rejects(relabelVm(client, { ...demo, check }), { name: 'AssertionError' })
    assert.deepEqual([state.labels, state.writes], [{ team: 'web' }, 1])
  })

  it('changes of labels are written as kubectl has them', () => {
    assert.deepEqual(['team=ios', 'team-', 'a-b-', 'x=', 'note=a=b', '=x', '-', 'team', ''].map(parseLabelChange), [
      { name: 'team', value: 'ios' },
      { name: 'team' },
      { name: 'a-b' },
      { name: 'x', value: '' },
      { name: 'note', value: 'a=b' },
      undefined,
      undefined,
      undefined,
      undefined,
    ])
    assert.deepEqual(relabelled({ team: 'web', tier: '1' }, [{ name: 'tier' }, { name: 'x', value: '2' }]), {
      team: 'web',
      x: '2',
    })
    assert.deepEqual(Object.keys(relabelled({}, [{ name: '__proto__', value: '1' }])), ['__proto__'])
  })
})
