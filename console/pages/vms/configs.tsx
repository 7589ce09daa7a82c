// The list of VM configurations and their form.
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
import { creationOf, deletionOf, formItem, RemoveDialog, wordsFor } from '../../ui/action-dialog.tsx'
import { CheckField, type Form, filled, NamespaceField, TextField, type Typed } from '../../ui/field.tsx'
import type { MenuItem } from '../../ui/menu.tsx'
import type { Filter } from '../../ui/table/filters.ts'
import type { Column } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import type { ActionContext } from '../action-context.ts'
import { menuColumn, nameColumn } from '../columns.tsx'
import { imagePath, listPath } from '../paths.ts'
import { reasonAgainstDeleting } from './model.ts'

const noun = 'configuration'
const updateWords = wordsFor(noun)(
  'Change',
  'changed',
  'VMs deployed from it are not affected. Pools replace their warm VMs.',
)
const deleteWords = deletionOf(noun)

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
  menuColumn(({ name }) => name, configItems),
]

const filters: readonly Filter<VmConfig>[] = [{ param: 'image', label: 'Image', of: (config) => config.image }]

export const VmConfigs = () => (
  <TablePage
    title="Configurations"
    emptyTitle="No configurations yet"
    emptyText="A configuration is a saved set of deploy options. Create one here or from a terminal:"
    operation={listVmConfigs}
    create={configCreation}
    example={{ operation: createVmConfig, body: { name: 'ios-build', image: 'sonoma', cpu: 4, memory: 8 } }}
    columns={columns}
    filters={filters}
  />
)

export function configItems(config: VmConfig, { person, go }: ActionContext): readonly MenuItem[] {
  const { name, namespace, owner } = config
  const reason = reasonAgainstDeleting(owner, person)
  return [
    { label: 'Deploy VM', onChoose: () => go(listPath('/vms', { deploy: '', config: name, namespace })) },
    formItem({
      words: updateWords,
      reason,
      name,
      operation: updateVmConfig,
      size: 'large',
      initial: formOf(config),
      input: (values) => ({
        params: { namespace, vmconfig: name },
        body: { ...keptOf(config), ...settingsOf(values) },
      }),
      needs: { image: 'Image' },
      fields: ({ field }) => <Settings field={field} namespace={namespace} isFirst />,
    }),
    {
      label: deleteWords.label,
      reason,
      isDanger: true,
      dialog: (onClose) => <Delete config={config} onClose={onClose} />,
    },
  ]
}

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

export const configCreation = (main: string): MenuItem =>
  formItem({
    words: creationOf(noun),
    operation: createVmConfig,
    size: 'large',
    initial: { ...emptyForm, name: '', namespace: main },
    input: ({ name, namespace, ...values }) => ({ params: { namespace }, body: { name, ...settingsOf(values) } }),
    createdName: ({ name }) => name,
    needs: { name: 'Name', image: 'Image' },
    fields: ({ field, values }) => (
      <>
        <div className="fields">
          <TextField label="Name" hint="At most 50 lowercase letters, digits and dashes" {...field('name')} autoFocus />
          <NamespaceField {...field('namespace')} />
        </div>
        <Settings field={field} namespace={values.namespace} />
      </>
    ),
  })

const emptyForm = { image: '', cpu: '', memory: '', tag: '', tagRequired: false, noScreen: false }
type ConfigForm = Typed<typeof emptyForm>

const formOf = ({ image, cpu, memory, tag = '', tagRequired, vncConsole }: VmConfig): ConfigForm => ({
  image,
  cpu: String(cpu),
  memory: memory === 0 ? '' : String(memory),
  tag,
  tagRequired,
  noScreen: !vncConsole,
})

const settingsOf = ({ image, cpu, memory, tag, tagRequired, noScreen }: ConfigForm): object => ({
  image,
  ...(cpu !== '' && { cpu: Number(cpu) }),
  ...(memory !== '' && { memory: Number(memory) }),
  ...filled({ tag, tagRequired }),
  ...(noScreen && { vncConsole: false }),
})

/** Keeps the fields that the form does not show. The ones it shows are reset to their defaults first. */
function keptOf({ name, namespace, owner, createdAt, nodeName, type, ...kept }: VmConfig): object {
  return { ...kept, cpu: 0, memory: 0, tag: '', tagRequired: false, vncConsole: true }
}

interface SettingsProps {
  readonly field: Form<ConfigForm>['field']
  readonly namespace: string
  /** No field precedes these, so the first of them takes the focus. */
  readonly isFirst?: boolean
}

function Settings({ field, namespace, isFirst = false }: SettingsProps) {
  const images = useLive(listImages, [namespace]).items
  return (
    <>
      <div className="fields">
        <TextField label="Image" {...field('image')} autoFocus={isFirst} suggestions={images.map(({ name }) => name)} />
        <TextField label="Cores" placeholder="3" {...field('cpu')} />
        <TextField label="Memory in GiB" placeholder="Automatic" {...field('memory')} />
        <TextField label="Tag" hint="Prefer nodes with this tag" {...field('tag')} />
      </div>
      <div className="fields">
        <CheckField label="Require the tag" {...field('tagRequired')} />
        <CheckField label="No screen (disable VNC)" {...field('noScreen')} />
      </div>
    </>
  )
}
