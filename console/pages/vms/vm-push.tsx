// Pushing a VM to a registry. Whoever may store credentials sees at once when there are none, and adds them from here.
import { useState } from 'react'
import { listRegistryCredentials } from '../../../src/api/access/registry-credentials.ts'
import { pushVm } from '../../../src/api/vms/push-jobs.ts'
import type { Vm } from '../../../src/api/vms/vms.ts'
import { credentialFor, parseImageReference, serversOf } from '../../../src/rules/image-reference.ts'
import { useLive } from '../../api/live.ts'
import { useSession } from '../../api/session.ts'
import { texts } from '../../texts.ts'
import { ActionDialog } from '../../ui/action-dialog.tsx'
import { Button } from '../../ui/button.tsx'
import { TextField } from '../../ui/field.tsx'
import { AddCredentials } from '../access/add-credentials.tsx'

const { actions } = texts
const words = actions.push

interface Props {
  readonly vm: Vm
  readonly onClose: () => void
}

export function VmPush({ vm, onClose }: Props) {
  const [imageReference, setReference] = useState('')
  const [adding, setAdding] = useState<string>()
  const lacking = useLackingServer(imageReference, vm.namespace)
  return (
    <>
      <ActionDialog
        title={`${words.label}: ${vm.name}`}
        text={words.text}
        label={words.label}
        operation={pushVm}
        input={{ params: { namespace: vm.namespace, vm: vm.name }, body: { imageReference } }}
        said={actions.started(words.label, imageReference)}
        saidOf="/pushes"
        about={lacking}
        onClose={onClose}
      >
        {(faults) => (
          <>
            <TextField
              label={words.reference}
              hint={words.referenceHint}
              fault={faults.get('imageReference')}
              value={imageReference}
              onValue={setReference}
              autoFocus
            />
            {lacking !== undefined && (
              <div className="note" data-tone="warn" role="status">
                <span>{words.lacking(lacking, vm.namespace)}</span>
                <div>
                  <Button size="small" onClick={() => setAdding(lacking)}>
                    {texts.credentials.add}
                  </Button>
                </div>
              </div>
            )}
          </>
        )}
      </ActionDialog>
      {adding !== undefined && (
        <AddCredentials namespace={vm.namespace} server={adding} onClose={() => setAdding(undefined)} />
      )}
    </>
  )
}

/** The registry of a reference for which nothing is stored; undefined also where the caller may not know. */
function useLackingServer(reference: string, namespace: string): string | undefined {
  const { person } = useSession()
  const { items, isLoaded } = useLive(listRegistryCredentials, person?.admin ? [namespace] : [])
  const parsed = parseImageReference(reference, 'push')
  if (!person?.admin || !isLoaded || !parsed.ok || credentialFor(parsed.reference, items)) return undefined
  return serversOf(parsed.reference)[0]
}
