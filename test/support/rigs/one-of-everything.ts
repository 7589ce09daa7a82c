// A service with one of everything that the console shows, on simulated hosts, and a list of all pages.
import assert from 'node:assert/strict'
import { type DevServer, makeFolder, startDev } from '../processes/dev-server.ts'
import { markup } from '../tools/markup-everywhere.ts'

const ns = '/api/v1/namespaces/svc-default'
export const options = {
  args: ['--driver', 'simulated', '--simulate', 'boot=20ms,stop=20ms', '--nodes', 'arm64=2,amd64=2'],
}

/** The caller ends it and removes its data. */
export async function startWithEverything(): Promise<{ readonly data: string; readonly server: DevServer }> {
  const data = await makeFolder()
  const server = await startDev(data, options)
  const call = async (method: string, url: string, body?: unknown): Promise<void> => {
    const answer = await server.call(method, url, body)
    assert.ok(answer.status < 300, `${method} ${url}: ${JSON.stringify(answer.body)}`)
  }
  await call('POST', '/api/v1/namespaces', { name: 'svc-ios' })
  await call('POST', `${ns}/vms`, { name: 'web', image: 'tiny-amd64', cpu: 1, labels: { team: 'ios' } })
  for (const node of ['sim-arm64-1', 'sim-arm64-2'])
    await call('POST', `${ns}/vms`, { name: `on-${node}`, image: 'tiny-arm64', cpu: 1, node })
  await call('POST', `${ns}/vms?wait=false`, { name: 'huge', image: 'tiny-arm64', cpu: 12 })
  await call('POST', `${ns}/images/tiny-amd64/copy`, { name: 'copied', description: markup })
  await call('POST', `${ns}/vmconfigs`, { name: 'ios-build', image: 'tiny-arm64', cpu: 2 })
  const schedule = [{ cron: '0 0 * * *', timeZone: 'Europe/Berlin', minIdle: 1 }]
  const credential = { token: 'ghp_example' }
  await call('POST', `${ns}/runnerpools`, {
    name: 'ci',
    config: 'ios-build',
    url: 'http://127.0.0.1:2/acme',
    credential,
  })
  await call('POST', `${ns}/pools`, { name: 'warm', config: 'ios-build', maxIdle: 2, schedule, paused: true })
  await call('POST', `${ns}/serviceaccounts/jenkins`)
  await call('POST', `${ns}/secrets/registrycredentials/add`, {
    server: 'https://ghcr.io',
    username: 'ci',
    password: 'canary-password',
  })
  return { data, server }
}

/** The path and heading of each page. */
export const pages = [
  ['/', 'Overview'],
  ['/vms', 'VMs'],
  ['/vms/svc-default/web', 'web'],
  ['/vms/svc-default/huge', 'huge'],
  ['/vms?deploy', 'VMs'],
  ['/images', 'Images'],
  ['/images/copied', 'copied'],
  ['/isos', 'ISOs'],
  ['/pushes', 'Push jobs'],
  ['/nodes', 'Nodes'],
  ['/nodes/svc-default/sim-amd64-1', 'sim-amd64-1'],
  ['/nodes?join', 'Nodes'],
  ['/configurations', 'Configurations'],
  ['/pools', 'Pools'],
  ['/pools/svc-default/warm', 'warm'],
  ['/quota', 'Quota'],
  ['/runner-pools', 'Runner pools'],
  ['/runner-pools/svc-default/ci', 'ci'],
  ['/events', 'Events'],
  ['/charts', 'Charts'],
  ['/usage', 'Usage'],
  ['/credentials', 'Registry credentials'],
  ['/namespaces', 'Namespaces'],
  ['/access', 'Access'],
  ['/accounts', 'Service accounts'],
  ['/legacy', 'Legacy usage'],
  ['/nowhere', 'Page not found'],
] as const
