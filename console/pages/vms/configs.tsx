// VM configurations: named sets of values for deployments.
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
import { texts } from '../../texts.ts'
import { ActionDialog, RemoveDialog } from '../../ui/action-dialog.tsx'
import { CheckField, filled, NamespaceField, TextField, useForm } from '../../ui/field.tsx'
import { ActionsMenu, type MenuItem } from '../../ui/menu.tsx'
import type { Filter } from '../../ui/table/filters.ts'
import { actionsColumn, type Column } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { type Acting, useActing } from '../acting.ts'
import { nameColumn } from '../links.tsx'
import { imagePath, listPath } from '../paths.ts'
import { deployTexts, configTexts as words } from './late-texts.ts'
import { reasonAgainstDeleting } from './model.ts'

const columns: readonly Column<VmConfig>[] = [
  nameColumn(),
  { title: texts.common.namespace, by: (config) => config.namespace, look: 'wide' },
  {
    title: deployTexts.image,
    by: (config) => config.image,
    cell: ({ image }) => <Link href={imagePath('image', image)}>{image}</Link>,
  },
  { title: texts.common.type, by: (config) => config.type, look: 'wide' },
  { title: deployTexts.cpu, by: (config) => config.cpu, look: 'number' },
  {
    title: words.memory,
    by: (config) => config.memory,
    look: 'number wide',
    cell: (config) => (config.memory === 0 ? deployTexts.auto : memorySize(config.memory * 1_024)),
  },
  { title: deployTexts.tag, look: 'lesser wide', cell: (config) => config.tag ?? '–' },
  { title: texts.common.owner, by: (config) => config.owner, look: 'lesser wide' },
  actionsColumn((config) => <ConfigMenu config={config} />),
]

const filters: readonly Filter<VmConfig>[] = [
  { param: 'image', label: deployTexts.image, of: (config) => config.image },
]

export function VmConfigs() {
  const { shown, main } = useNamespaces()
  const params = { namespace: main }
  const body = { name: 'ios-build', image: 'sonoma', cpu: 4, memory: 8 }
  return (
    <TablePage
      words={words}
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

/** What can be done to a configuration, in the order of its menu. */
export function configItems(config: VmConfig, { person, go }: Acting): readonly MenuItem[] {
  const { name, namespace, owner } = config
  const reason = reasonAgainstDeleting(owner, person)
  return [
    { label: words.deployFrom, onChoose: () => go(listPath('/vms', { deploy: '', config: name, namespace })) },
    {
      label: words.update.label,
      reason,
      dialog: (onClose) => <Form namespace={namespace} config={config} onClose={onClose} />,
    },
    {
      label: words.delete.label,
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
      words={{ ...words.delete, text: words.lost(lost) }}
      operation={deleteVmConfig}
      input={{ params: { namespace, vmconfig: name } }}
      onClose={onClose}
    />
  )
}

export const configCreation = (namespace: string): MenuItem => ({
  label: words.create.label,
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

/** What the form does not show stays, and what is left out of it gets its default. */
function keptOf({ name, namespace, owner, createdAt, nodeName, type, ...kept }: VmConfig): object {
  return { ...kept, cpu: 0, memory: 0, tag: '', tagRequired: false, vncConsole: true }
}

interface FormProps extends Partial<DialogProps> {
  readonly namespace: string
  readonly onClose: () => void
}

/** Creates one, or changes the one that is given. */
function Form({ namespace: main, config, onClose }: FormProps) {
  const [namespace, setNamespace] = useState(main)
  const images = useLive(listImages, [namespace]).items
  const { values, field } = useForm(config ? formOf(config) : emptyForm)
  const { name, image, cpu, memory, tag, tagRequired, noScreen } = values
  const missing = name === '' ? texts.common.name : image === '' ? deployTexts.image : undefined
  const settings = {
    image,
    ...(cpu !== '' && { cpu: Number(cpu) }),
    ...(memory !== '' && { memory: Number(memory) }),
    ...filled({ tag, tagRequired }),
    ...(noScreen && { vncConsole: false }),
  }
  return (
    <ActionDialog
      words={config ? words.update : words.create}
      name={name}
      operation={config ? updateVmConfig : createVmConfig}
      input={
        config
          ? { params: { namespace, vmconfig: name }, body: { ...keptOf(config), ...settings } }
          : { params: { namespace }, body: { name, ...settings } }
      }
      reason={missing && texts.common.required(missing)}
      size="large"
      onClose={onClose}
    >
      <div className="fields">
        {!config && <TextField label={texts.common.name} hint={words.nameHint} {...field('name')} autoFocus />}
        <TextField
          label={deployTexts.image}
          {...field('image')}
          autoFocus={!!config}
          offers={images.map((each) => each.name)}
        />
        <TextField label={deployTexts.cpu} placeholder="3" {...field('cpu')} />
        <TextField label={deployTexts.memory} placeholder={deployTexts.auto} {...field('memory')} />
        <TextField label={deployTexts.tag} hint={deployTexts.tagHint} {...field('tag')} />
        {!config && <NamespaceField value={namespace} onValue={setNamespace} />}
      </div>
      <div className="fields">
        <CheckField label={deployTexts.tagRequired} {...field('tagRequired')} />
        <CheckField label={deployTexts.noScreen} {...field('noScreen')} />
      </div>
    </ActionDialog>
  )
}
