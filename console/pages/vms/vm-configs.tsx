// VM configurations: named sets of values for deployments.
import { useState } from 'react'
import { useLocation } from 'wouter'
import { listImages } from '../../../src/api/images/images.ts'
import { createVmConfig, deleteVmConfig, listVmConfigs, type VmConfig } from '../../../src/api/vms/vm-configs.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { useSession } from '../../api/session.ts'
import { commandLine } from '../../teach/commands.ts'
import { texts } from '../../texts.ts'
import { ActionDialog, RemoveDialog } from '../../ui/action-dialog.tsx'
import { Button } from '../../ui/button.tsx'
import { CheckField, SelectField, TextField } from '../../ui/field.tsx'
import { Menu } from '../../ui/menu.tsx'
import { openDialog } from '../../ui/open-dialog.tsx'
import { RecordsPage } from '../../ui/records-page.tsx'
import type { Column } from '../../ui/table.tsx'
import { TeachPage } from '../../ui/teach.tsx'
import { reasonAgainstDeleting } from './vm-rules.ts'

const words = texts.configs

const columns: readonly Column<VmConfig>[] = [
  { title: texts.common.name, by: (config) => config.name, cell: (config) => <b>{config.name}</b> },
  { title: texts.common.namespace, by: (config) => config.namespace, look: 'wide', cell: (config) => config.namespace },
  { title: texts.deploy.image, by: (config) => config.image, cell: (config) => config.image },
  { title: texts.common.type, by: (config) => config.type, look: 'wide', cell: (config) => config.type },
  { title: texts.deploy.cpu, by: (config) => config.cpu, look: 'number', cell: (config) => config.cpu },
  {
    title: texts.deploy.memory,
    by: (config) => config.memory,
    look: 'number wide',
    cell: (config) => (config.memory === 0 ? texts.deploy.auto : config.memory),
  },
  { title: texts.deploy.tag, look: 'lesser wide', cell: (config) => config.tag ?? '–' },
  { title: texts.common.owner, by: (config) => config.owner, look: 'lesser wide', cell: (config) => config.owner },
  { title: texts.common.actions, look: 'end', cell: (config) => <ConfigMenu config={config} /> },
]

export function VmConfigs() {
  const { shown, main } = useNamespaces()
  const list = useLive(listVmConfigs, shown)
  const [isOpen, setOpen] = useState(false)
  const params = { namespace: main }
  const example = commandLine(createVmConfig, {
    params,
    body: { name: 'ios-build', image: 'sonoma', cpu: 4, memory: 8 },
  })
  return (
    <RecordsPage
      words={words}
      teach={<TeachPage operation={listVmConfigs} input={{ params }} />}
      create={
        <Button kind="primary" onClick={() => setOpen(true)}>
          {words.create}
        </Button>
      }
      example={example}
      list={list}
      columns={columns}
      keyOf={(config) => `${config.namespace}/${config.name}`}
    >
      {isOpen && <Create namespace={main} onClose={() => setOpen(false)} />}
    </RecordsPage>
  )
}

function ConfigMenu({ config }: { readonly config: VmConfig }) {
  const { person } = useSession()
  const [, go] = useLocation()
  const { name, namespace, owner } = config
  const search = new URLSearchParams({ deploy: '', config: name, namespace }).toString()
  const remove = (onClose: () => void) => (
    <RemoveDialog
      name={name}
      text={words.deleteText}
      operation={deleteVmConfig}
      input={{ params: { namespace, vmconfig: name } }}
      onClose={onClose}
    />
  )
  const items = [
    { label: words.deployFrom, onChoose: () => go(`/vms?${search}`) },
    {
      label: texts.actions.delete.label,
      reason: reasonAgainstDeleting(owner, person),
      isDanger: true,
      onChoose: () => openDialog(remove),
    },
  ]
  return <Menu label={texts.common.actionsOf(name)} items={items} size="small" />
}

function Create({ namespace: main, onClose }: { readonly namespace: string; readonly onClose: () => void }) {
  const { all } = useNamespaces()
  const [namespace, setNamespace] = useState(main)
  const images = useLive(listImages, [namespace]).items
  const [form, setForm] = useState({
    name: '',
    image: '',
    cpu: '',
    memory: '',
    tag: '',
    tagRequired: false,
    noScreen: false,
  })
  const change = (part: Partial<typeof form>): void => setForm((before) => ({ ...before, ...part }))
  const body = {
    name: form.name,
    image: form.image,
    ...(form.cpu !== '' && { cpu: Number(form.cpu) }),
    ...(form.memory !== '' && { memory: Number(form.memory) }),
    ...(form.tag !== '' && { tag: form.tag }),
    ...(form.tagRequired && { tagRequired: true }),
    ...(form.noScreen && { vncConsole: false }),
  }
  return (
    <ActionDialog
      title={words.create}
      label={words.create}
      operation={createVmConfig}
      input={{ params: { namespace }, body }}
      reason={form.name === '' ? texts.common.name : form.image === '' ? texts.deploy.image : undefined}
      size="large"
      said={texts.actions.done(words.create, form.name)}
      onClose={onClose}
    >
      {(faults) => (
        <>
          <div className="fields">
            <TextField
              label={texts.common.name}
              hint={words.nameHint}
              fault={faults.get('name')}
              value={form.name}
              onValue={(name) => change({ name })}
              autoFocus
            />
            <TextField
              label={texts.deploy.image}
              fault={faults.get('image')}
              value={form.image}
              onValue={(image) => change({ image })}
              offers={images.map((image) => image.name)}
            />
            <TextField
              label={texts.deploy.cpu}
              fault={faults.get('cpu')}
              placeholder="3"
              value={form.cpu}
              onValue={(cpu) => change({ cpu })}
            />
            <TextField
              label={texts.deploy.memory}
              fault={faults.get('memory')}
              placeholder={texts.deploy.auto}
              value={form.memory}
              onValue={(memory) => change({ memory })}
            />
            <TextField
              label={texts.deploy.tag}
              fault={faults.get('tag')}
              value={form.tag}
              onValue={(tag) => change({ tag })}
            />
            <SelectField
              label={texts.common.namespace}
              value={namespace}
              onValue={setNamespace}
              choices={all.map((name) => ({ value: name, label: name }))}
            />
          </div>
          <div className="fields">
            <CheckField
              label={texts.deploy.tagRequired}
              value={form.tagRequired}
              onValue={(tagRequired) => change({ tagRequired })}
            />
            <CheckField
              label={texts.deploy.noScreen}
              value={form.noScreen}
              onValue={(noScreen) => change({ noScreen })}
            />
          </div>
        </>
      )}
    </ActionDialog>
  )
}
