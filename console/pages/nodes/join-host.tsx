// How a host joins: one line to copy, with a token that is shown once.
import { useState } from 'react'
import { createJoinToken } from '../../../src/api/nodes/nodes.ts'
import type { ResponseOf } from '../../../src/api/operation.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { texts } from '../../texts.ts'
import { ActionDialog } from '../../ui/action-dialog.tsx'
import { Button } from '../../ui/button.tsx'
import { Code } from '../../ui/copy.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { CheckField, SelectField, TextField } from '../../ui/field.tsx'
import { Time } from '../../ui/time.tsx'
import { joinLine } from './join-line.ts'

const words = texts.nodes

export function JoinHost({ onClose }: { readonly onClose: () => void }) {
  const { all, main } = useNamespaces()
  const [namespace, setNamespace] = useState(main)
  const [duration, setDuration] = useState('1h')
  const [reusable, setReusable] = useState(false)
  const [made, setMade] = useState<ResponseOf<typeof createJoinToken>>()
  if (made)
    return (
      <Dialog title={words.joinTitle} onClose={onClose}>
        <p>{words.joinRun}</p>
        <Code text={joinLine(made.join ?? made.token)} what={words.join} />
        <p className="muted">
          {words.joinEnds} <Time at={made.expiresAt} />
        </p>
        <div className="dialog-foot">
          <Button kind="primary" onClick={onClose}>
            {texts.common.done}
          </Button>
        </div>
      </Dialog>
    )
  return (
    <ActionDialog
      title={words.joinTitle}
      text={words.joinText}
      label={words.joinMake}
      operation={createJoinToken}
      input={{ params: { namespace }, body: { duration, ...(reusable && { reusable }) } }}
      onClose={onClose}
      onDone={setMade}
    >
      {(faults) => (
        <div className="fields">
          <SelectField
            label={texts.common.namespace}
            value={namespace}
            onValue={setNamespace}
            choices={all.map((name) => ({ value: name, label: name }))}
          />
          <TextField label={words.joinDuration} fault={faults.get('duration')} value={duration} onValue={setDuration} />
          <CheckField label={words.joinReusable} value={reusable} onValue={setReusable} />
        </div>
      )}
    </ActionDialog>
  )
}
