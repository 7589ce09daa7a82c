// How a host joins: one line to copy, with a token that is shown once.
import { useState } from 'react'
import { createJoinToken } from '../../../src/api/nodes/nodes.ts'
import type { ResponseOf } from '../../../src/api/operation.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { ActionDialog, SecretDialog } from '../../ui/action-dialog.tsx'
import { CheckField, filled, NamespaceField, TextField, useForm } from '../../ui/field.tsx'
import { Time } from '../../ui/time.tsx'
import { joinLine } from './model.ts'
import { nodeTexts as words } from './texts.ts'

export function JoinHost({ onClose }: { readonly onClose: () => void }) {
  const { main } = useNamespaces()
  const [namespace, setNamespace] = useState(main)
  const { values, field } = useForm({ duration: '1h', reusable: false })
  const [made, setMade] = useState<ResponseOf<typeof createJoinToken>>()
  const { duration, ...checks } = values
  if (made)
    return (
      <SecretDialog
        title={words.joinTitle}
        text={words.joinRun}
        secret={joinLine(made.join ?? made.token)}
        what={words.join}
        onClose={onClose}
      >
        {words.joinEnds} <Time at={made.expiresAt} />
      </SecretDialog>
    )
  return (
    <ActionDialog
      title={words.joinTitle}
      text={words.joinText}
      label={words.joinMake}
      operation={createJoinToken}
      input={{ params: { namespace }, body: { duration, ...filled(checks) } }}
      onClose={onClose}
      onDone={setMade}
    >
      <div className="fields">
        <NamespaceField value={namespace} onValue={setNamespace} />
        <TextField label={words.joinDuration} {...field('duration')} />
        <CheckField label={words.joinReusable} {...field('reusable')} />
      </div>
    </ActionDialog>
  )
}
