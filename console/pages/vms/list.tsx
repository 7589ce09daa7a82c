// The list of VMs, and the deploy dialog.
import { deployVm, listVms, type Vm } from '../../../src/api/vms/vms.ts'
import { useLive } from '../../api/live.ts'
import { useNamespaces } from '../../api/namespaces.ts'
import { count } from '../../ui/sizes.ts'
import type { Filter } from '../../ui/table/filters.ts'
import { useQuery } from '../../ui/table/query.ts'
import type { Column } from '../../ui/table/table.tsx'
import { TablePage } from '../../ui/table/table-page.tsx'
import { Time } from '../../ui/time.tsx'
import { menuColumn, nameColumn } from '../columns.tsx'
import { vmPath } from '../paths.ts'
import { vmItems } from './actions.tsx'
import { BulkBar } from './bulk.tsx'
import { Deploy } from './deploy.tsx'
import { labelsOf, memoryText, powerWords, textOf } from './model.ts'
import { QueueCard } from './queue.tsx'
import { VmState } from './state.tsx'

const otherColumns: readonly Column<Vm>[] = [
  { title: 'Power', by: (vm) => vm.powerState, cell: (vm) => <VmState vm={vm} /> },
  { title: 'Image', by: (vm) => vm.image, look: 'wide' },
  { title: 'Node', by: (vm) => vm.node ?? '', look: 'wide', cell: (vm) => vm.node ?? '–' },
  { title: 'Cores', by: (vm) => vm.cpu, look: 'number lesser' },
  {
    title: 'Memory',
    by: (vm) => Number.parseFloat(vm.memory) || 0,
    look: 'number lesser',
    cell: (vm) => memoryText(vm.memory),
  },
  { title: 'Owner', by: (vm) => vm.owner, look: 'wide lesser' },
  {
    title: 'Deployed',
    by: (vm) => -Date.parse(vm.deployDate),
    look: 'wide',
    cell: (vm) => <Time at={vm.deployDate} />,
  },
  menuColumn(({ name }) => name, vmItems),
]
const columns = [nameColumn(vmPath), ...otherColumns]
const columnsWithNamespace = [
  nameColumn(vmPath),
  { title: 'Namespace', by: (vm: Vm) => vm.namespace, look: 'wide' },
  ...otherColumns,
]

const filters: readonly Filter<Vm>[] = [
  {
    param: 'state',
    label: 'Power',
    of: (vm) => vm.powerState,
    labelOf: (state) => powerWords[state as Vm['powerState']] ?? state,
  },
  { param: 'image', label: 'Image', of: (vm) => vm.image },
  { param: 'node', label: 'Node', of: (vm) => vm.node },
  { param: 'owner', label: 'Owner', of: (vm) => vm.owner },
  { param: 'label', label: 'Label', of: labelsOf },
]

export function VmList() {
  const { shown } = useNamespaces()
  const list = useLive(listVms, shown)
  const { params, change } = useQuery()
  return (
    <TablePage
      title="VMs"
      searchHint="Search name, image, node, label"
      count={(shown: number, all: number) => (shown === all ? count(all, 'VM', 'VMs') : `${shown} of ${all} VMs`)}
      emptyTitle="No VMs yet"
      emptyText="Deploy a VM here or from a terminal:"
      operation={listVms}
      input={{ query: { watch: true } }}
      create={{ label: 'Deploy VM', onChoose: () => change({ deploy: 'yes' }) }}
      example={{ operation: deployVm, body: { name: 'demo', image: 'tiny-arm64' } }}
      list={list}
      columns={shown.length > 1 ? columnsWithNamespace : columns}
      filters={filters}
      textOf={textOf}
      above={shown
        .filter((namespace) => list.items.some((vm) => isWaiting(vm, namespace)))
        .map((namespace) => <QueueCard key={namespace} namespace={namespace} />)}
      bulk={(selection) => <BulkBar selection={selection} />}
    >
      {params.has('deploy') && (
        <Deploy
          onClose={() => change({ deploy: undefined, config: undefined, image: undefined, namespace: undefined })}
        />
      )}
    </TablePage>
  )
}

const isWaiting = (vm: Vm, namespace: string): boolean =>
  vm.namespace === namespace && vm.powerState === 'pending' && vm.node === undefined
