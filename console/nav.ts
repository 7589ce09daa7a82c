// The pages that the navigation leads to, and the finder finds.
import { texts } from './texts.ts'

const { nav } = texts

export type Place = readonly [path: string, label: string]

export const everybody: readonly Place[] = [
  ['/', nav.overview],
  ['/vms', nav.vms],
  ['/images', nav.images],
  ['/isos', nav.isos],
  ['/pushes', nav.pushes],
  ['/nodes', nav.nodes],
  ['/configurations', nav.configs],
  ['/pools', nav.pools],
  ['/runner-pools', nav.runnerPools],
  ['/events', nav.events],
  ['/charts', nav.charts],
]

export const administrators: readonly Place[] = [
  ['/credentials', nav.credentials],
  ['/namespaces', nav.namespaces],
  ['/access', nav.access],
  ['/accounts', nav.accounts],
  ['/legacy', nav.legacy],
]
