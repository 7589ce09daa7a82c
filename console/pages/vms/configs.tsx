// The list of VM configurations and their form.
import { useState } from 'react'
import { Link } from 'wouter'
import { listImages } from '../../../src/api/images/images.ts'
import { listPools } from '../../../src/api/vms/pools.ts'
import { listRunnerPools } from '../../../src/api/vms/runner-pools.ts'
import {
  createVmConfig,
  deleteVmConfig,
  listVmConfigs,
  updateVmConfig,
  type VmConfig,
} from '../../../src/api/vms/vm-configs.ts'
import { poolsWithout } from '../../../src/rules/pools/pools-without.ts'
import { memorySize } from '../../../src/rules/sizes.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { commandLine } from '../../teach/commands.ts'
import { ActionDialog, type ActionWords, RemoveDialog } from '../../ui/action-dialog.tsx'
import { CheckField, filled, NamespaceField, required, TextField, useForm } from '../../ui/field.tsx'
import { ActionsMenu, type MenuItem } from '../../ui/menu.tsx'
import type { Filter } from '../../ui/table/filters.ts'
import { actionsColumn, type Column } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { type Acting, useActing } from '../acting.ts'
import { nameColumn } from '../links.tsx'
import { imagePath, listPath } from '../paths.ts'
import { reasonAgainstDeleting } from './model.ts'

const createWords: ActionWords = {
  label: 'Create configuration',
  done: (name: string) => `Configuration ${name} created`,
}

const updateWords: ActionWords = {
  label: 'Change',
  title: (name: string) => `Change configuration ${name}`,
  text: 'VMs deployed from it are not affected. Pools replace their warm VMs.',
  done: (name: string) => `Configuration ${name} changed`,
}

const deleteWords: ActionWords = {
  label: 'Delete',
  title: (name: string) => `Delete configuration ${name}?`,
  done: (name: string) => `Configuration ${name} deleted`,
}

const columns: readonly Column<VmConfig>[] = [
  nameColumn(),
  { title: 'Namespace', by: (config) => config.namespace, look: 'wide' },
  {
    title: 'Image',
    by: (config) => config.image,
    cell: ({ image }) => <Link href={imagePath('image', image)}>{image}</Link>,
  },
  { title: 'Type', by: (config) => config.type, look: 'wide' },
  { title: 'Cores', by: (config) => config.cpu, look: 'number' },
  {
    title: 'Memory',
    by: (config) => config.memory,
    look: 'number wide',
    cell: (config) => (config.memory === 0 ? 'Automatic' : memorySize(config.memory * 1_024)),
  },
  { title: 'Tag', look: 'lesser wide', cell: (config) => config.tag ?? '–' },
  { title: 'Owner', by: (config) => config.owner, look: 'lesser wide' },
  actionsColumn((config) => <ConfigMenu config={config} />),
]

const filters: readonly Filter<VmConfig>[] = [{ param: 'image', label: 'Image', of: (config) => config.image }]

export function VmConfigs() {
  const { shown, main } = useNamespaces()
  const params = { namespace: main }
  const body = { name: 'ios-build', image: 'sonoma', cpu: 4, memory: 8 }
  return (
    <TablePage
      title="Configurations"
      emptyTitle="No configurations yet"
      emptyText="A configuration is a saved set of deploy options. Create one here or from a terminal:"
      operation={listVmConfigs}
      input={{ params }}
      create={configCreation(main)}
      example={commandLine(createVmConfig, { params, body })}
      list={useLive(listVmConfigs, shown)}
      columns={columns}
      filters={filters}
    />
  )
}

export function configItems(config: VmConfig, { person, go }: Acting): readonly MenuItem[] {
  const { name, namespace, owner } = config
  const reason = reasonAgainstDeleting(owner, person)
  return [
    { label: 'Deploy VM', onChoose: () => go(listPath('/vms', { deploy: '', config: name, namespace })) },
    {
      label: updateWords.label,
      reason,
      dialog: (onClose) => <Form namespace={namespace} config={config} onClose={onClose} />,
    },
    {
      label: deleteWords.label,
      reason,
      isDanger: true,
      dialog: (onClose) => <Delete config={config} onClose={onClose} />,
    },
  ]
}

const ConfigMenu = ({ config }: { readonly config: VmConfig }) => (
  <ActionsMenu name={config.name} items={configItems(config, useActing())} size="small" />
)

interface DialogProps {
  readonly config: VmConfig
  readonly onClose: () => void
}

function Delete({ config: { name, namespace }, onClose }: DialogProps) {
  const pools = useLive(listPools, [namespace]).items
  const lost = poolsWithout([name], pools, useLive(listRunnerPools, [namespace]).items)
  return (
    <RemoveDialog
      name={name}
      words={{ ...deleteWords, text: `VMs deployed from it are not affected. ${lost ?? ''}` }}
      operation={deleteVmConfig}
      input={{ params: { namespace, vmconfig: name } }}
      onClose={onClose}
    />
  )
}

export const configCreation = (namespace: string): MenuItem => ({
  label: createWords.label,
  dialog: (onClose) => <Form namespace={namespace} onClose={onClose} />,
})

const emptyForm = { name: '', image: '', cpu: '', memory: '', tag: '', tagRequired: false, noScreen: false }

const formOf = ({ name, image, cpu, memory, tag = '', tagRequired, vncConsole }: VmConfig): typeof emptyForm => ({
  name,
  image,
  cpu: String(cpu),
  memory: memory === 0 ? '' : String(memory),
  tag,
  tagRequired,
  noScreen: !vncConsole,
})

/** Keeps the fields that the form does not show. The ones it shows are reset to their defaults first. */
function keptOf({ name, namespace, owner, createdAt, nodeName, type, ...kept }: VmConfig): object {
  return { ...kept, cpu: 0, memory: 0, tag: '', tagRequired: false, vncConsole: true }
}

interface FormProps extends Partial<DialogProps> {
  readonly namespace: string
  readonly onClose: () => void
}

/** Creates a configuration, or changes `config`. */
function Form({ namespace: main, config, onClose }: FormProps) {
  const [namespace, setNamespace] = useState(main)
  const images = useLive(listImages, [namespace]).items
  const { values, field } = useForm(config ? formOf(config) : emptyForm)
  const { name, image, cpu, memory, tag, tagRequired, noScreen } = values
  const missing = name === '' ? 'Name' : image === '' ? 'Image' : undefined
  const settings = {
    image,
    ...(cpu !== '' && { cpu: Number(cpu) }),
    ...(memory !== '' && { memory: Number(memory) }),
    ...filled({ tag, tagRequired }),
    ...(noScreen && { vncConsole: false }),
  }
  return (
    <ActionDialog
      words={config ? updateWords : createWords}
      name={name}
      operation={config ? updateVmConfig : createVmConfig}
      input={
        config
          ? { params: { namespace, vmconfig: name }, body: { ...keptOf(config), ...settings } }
          : { params: { namespace }, body: { name, ...settings } }
      }
      reason={missing && required(missing)}
      size="large"
      onClose={onClose}
    >
      <div className="fields">
        {!config && (
          <TextField label="Name" hint="At most 50 lowercase letters, digits and dashes" {...field('name')} autoFocus />
        )}
        <TextField label="Image" {...field('image')} autoFocus={!!config} offers={images.map((each) => each.name)} />
        <TextField label="Cores" placeholder="3" {...field('cpu')} />
        <TextField label="Memory in GiB" placeholder="Automatic" {...field('memory')} />
        <TextField label="Tag" hint="Prefer nodes with this tag" {...field('tag')} />
        {!config && <NamespaceField value={namespace} onValue={setNamespace} />}
      </div>
      <div className="fields">
        <CheckField label="Require the tag" {...field('tagRequired')} />
        <CheckField label="No screen (disable VNC)" {...field('noScreen')} />
      </div>
    </ActionDialog>
  )
}
