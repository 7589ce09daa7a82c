// The navigation sections, also listed by the finder.
import type { IconName } from './ui/icons.tsx'

export type NavLink = readonly [path: string, label: string, icon?: IconName]

interface Section {
  readonly title?: string
  readonly isForAdministrators?: boolean
  readonly links: readonly NavLink[]
}

const sections: readonly Section[] = [
  { links: [['/', 'Overview', 'overview']] },
  {
    title: 'Compute',
    links: [
      ['/vms', 'VMs', 'vm'],
      ['/pools', 'Pools', 'pool'],
      ['/runner-pools', 'Runner pools', 'runner'],
      ['/configurations', 'Configurations', 'config'],
      ['/quota', 'Quota', 'quota'],
    ],
  },
  {
    title: 'Library',
    links: [
      ['/images', 'Images', 'image'],
      ['/isos', 'ISOs', 'iso'],
      ['/pushes', 'Push jobs', 'push'],
    ],
  },
  {
    title: 'Cluster',
    links: [
      ['/nodes', 'Nodes', 'node'],
      ['/events', 'Events', 'events'],
      ['/charts', 'Charts', 'charts'],
      ['/usage', 'Usage', 'usage'],
    ],
  },
  {
    title: 'Administration',
    isForAdministrators: true,
    links: [
      ['/credentials', 'Registry credentials', 'credentials'],
      ['/namespaces', 'Namespaces', 'namespace'],
      ['/access', 'Access', 'access'],
      ['/accounts', 'Service accounts', 'account'],
      ['/legacy', 'Legacy usage', 'legacy'],
    ],
  },
]

export const sectionsFor = (isAdmin: boolean): readonly Section[] =>
  sections.filter((section) => isAdmin || section.isForAdministrators !== true)
