// The pages that the navigation leads to, in its sections, and the finder finds.
import { texts } from './texts.ts'
import type { IconName } from './ui/icons.tsx'

const { nav } = texts

export type Place = readonly [path: string, label: string, icon?: IconName]

interface Section {
  readonly title?: string
  readonly isForAdministrators?: boolean
  readonly places: readonly Place[]
}

const sections: readonly Section[] = [
  { places: [['/', nav.overview, 'overview']] },
  {
    title: nav.compute,
    places: [
      ['/vms', nav.vms, 'vm'],
      ['/pools', nav.pools, 'pool'],
      ['/runner-pools', nav.runnerPools, 'runner'],
      ['/configurations', nav.configs, 'config'],
      ['/quota', nav.quota, 'quota'],
    ],
  },
  {
    title: nav.library,
    places: [
      ['/images', nav.images, 'image'],
      ['/isos', nav.isos, 'iso'],
      ['/pushes', nav.pushes, 'push'],
    ],
  },
  {
    title: nav.cluster,
    places: [
      ['/nodes', nav.nodes, 'node'],
      ['/events', nav.events, 'events'],
      ['/charts', nav.charts, 'charts'],
      ['/usage', nav.usage, 'usage'],
    ],
  },
  {
    title: nav.administration,
    isForAdministrators: true,
    places: [
      ['/credentials', nav.credentials, 'credentials'],
      ['/namespaces', nav.namespaces, 'namespace'],
      ['/access', nav.access, 'access'],
      ['/accounts', nav.accounts, 'account'],
      ['/legacy', nav.legacy, 'legacy'],
    ],
  },
]

/** Those that this person may use. */
export const sectionsFor = (isAdmin: boolean): readonly Section[] =>
  sections.filter((section) => isAdmin || section.isForAdministrators !== true)
