// Terminals for browsers. The service is the SSH client, because a page cannot be one.
import * as t from 'typebox'
import { inNamespace, operation } from '../operation.ts'

const Size = { columns: t.Integer({ minimum: 1, maximum: 1_000 }), rows: t.Integer({ minimum: 1, maximum: 1_000 }) }

/** Text messages of the client. Its input is in binary messages. */
export const TerminalMessage = t.Union([
  t.Object({
    type: t.Literal('open'),
    user: t.String({ minLength: 1, maxLength: 256 }),
    password: t.String({ maxLength: 1_024, writeOnly: true }),
    ...Size,
  }),
  t.Object({ type: t.Literal('resize'), ...Size }),
])
export type TerminalMessage = t.Static<typeof TerminalMessage>

/** Text messages of the service. The output of the guest is in binary messages. */
export const TerminalAnswer = t.Union([
  t.Object({
    type: t.Literal('opened'),
    hostKey: t.String({ description: 'Fingerprint of the host key of the guest' }),
  }),
  t.Object({ type: t.Literal('refused'), message: t.String(), hint: t.String() }),
  t.Object({ type: t.Literal('closed'), message: t.String() }),
])
export type TerminalAnswer = t.Static<typeof TerminalAnswer>

export const openTerminal = operation({
  id: 'openTerminal',
  noun: 'terminals',
  method: 'GET',
  path: `${inNamespace}/vms/{vm}/terminal`,
  allow: 'dev',
  status: 101,
  summary: 'Open a terminal in a VM',
  description:
    'A WebSocket. The client sends `{"type":"open","user":…,"password":…,"columns":80,"rows":24}` with an account of the ' +
    'guest, which is not stored, then input as binary messages and ' +
    '`{"type":"resize",…}`. The service answers `{"type":"opened"}` or `{"type":"refused","message":…,"hint":…}`, then ' +
    'sends output as binary messages, and `{"type":"closed","message":…}` at the end.',
  isUpgrade: true,
  response: t.String(),
  refuses: ['Conflict', 'ServiceUnavailable'],
  example: { params: { namespace: 'svc-default', vm: 'vm-cznfv' }, response: '' },
})
