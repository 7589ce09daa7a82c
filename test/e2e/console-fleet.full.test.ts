// The console with a fleet of Macs: overview, capacity, tasks, bulk actions, lineage, finder. With
// SVC3_SCREENSHOTS=FOLDER it makes the screenshots of the documentation.
import assert from 'node:assert/strict'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import type { DesiredVm, VmReport } from '../../src/api/nodes/agent.ts'
import { timestamp } from '../../src/platform/clock.ts'
import { heartbeatSeconds } from '../../src/server/nodes/fleet.ts'
import { root } from '../support/processes/dev-server.ts'
import { assertAccessible, focused, go, type Opened, openConsole } from '../support/rigs/console.ts'
import { launchBrowser, screenshot } from '../support/rigs/login.ts'
import { startService, type TestService } from '../support/rigs/service.ts'
import { type NodeStandIn, startNode, startScheduler } from '../support/stand-ins/node.ts'
import { eventually } from '../support/tools/eventually.ts'

const ns = '/api/v1/namespaces/svc-default'
const gib = 1_024
/** The history of the fleet covers less than an hour, because tokens of nodes are valid for that long. */
const [steps, stepMs] = [170, 19_000]

const studio = { architecture: 'arm64', cpu: 24, memoryMiB: 64 * gib, maxVms: 2 } as const
const mini = { architecture: 'arm64', cpu: 10, memoryMiB: 32 * gib, maxVms: 2 } as const
const pro = { architecture: 'amd64', cpu: 28, memoryMiB: 96 * gib } as const
const hosts = [
  ['mac-mini-1', mini],
  ['mac-mini-2', mini],
  ['mac-mini-3', mini],
  ['mac-mini-4', mini],
  ['mac-pro-1', pro],
  ['mac-pro-2', pro],
  ['mac-studio-1', studio],
  ['mac-studio-2', studio],
  ['mac-studio-3', studio],
] as const

const images = [
  ['sequoia-xcode-16.2', 'arm64', 120],
  ['sonoma-xcode-15.4', 'arm64', 90],
  ['sequoia-base', 'arm64', 64],
  ['ventura-intel', 'amd64', 90],
] as const

/** Step of the deployment, owner, name, image, node, cores, memory. */
const vms = [
  [8, 'ci@acme.dev', 'ios-release', 'sequoia-xcode-16.2', 'mac-studio-1', 8, 24],
  [21, 'grace@acme.dev', 'ui-tests-a', 'sonoma-xcode-15.4', 'mac-studio-1', 8, 16],
  [35, 'grace@acme.dev', 'ui-tests-b', 'sonoma-xcode-15.4', 'mac-studio-2', 8, 16],
  [52, 'ada@acme.dev', 'xcode-upgrade', 'sequoia-base', 'mac-mini-1', 6, 12],
  [70, 'ci@acme.dev', 'mac-app-nightly', 'sequoia-xcode-16.2', 'mac-mini-2', 8, 16],
  [88, 'ada@acme.dev', 'kext-lab', 'ventura-intel', 'mac-pro-1', 12, 32],
  [96, 'ci@acme.dev', 'intel-regression', 'ventura-intel', 'mac-pro-1', 8, 24],
  [140, 'ci@acme.dev', 'ios-pr-4127', 'sequoia-xcode-16.2', 'mac-studio-2', 6, 16],
  [158, 'ci@acme.dev', 'ios-pr-4131', 'sequoia-xcode-16.2', 'mac-mini-3', 4, 12],
  [168, 'ci@acme.dev', 'ios-pr-4133', 'sequoia-xcode-16.2', 'mac-studio-3', 6, 16],
] as const

/** The last VM is still being deployed. */
function react(vm: DesiredVm): Partial<VmReport> {
  if (vm.name === 'ios-pr-4133')
    return { power: 'starting', operation: { kind: 'deploy', phase: 'pulling the image', percent: 62 } }
  return { generation: vm.generation, power: vm.power === 'deleted' ? 'removed' : vm.power, diskGb: vm.diskGb ?? 90 }
}

let browser: Browser
let service: TestService
let scheduler: AsyncDisposable
let opened: Opened
let page: Page
const nodes: NodeStandIn[] = []
/** Keeps the streams of the stand-in nodes open, which the service ends after 40 seconds without a heartbeat. */
let heartbeats: NodeJS.Timeout

async function call(method: string, url: string, body?: unknown, by = 'admin@acme.dev'): Promise<void> {
  const token = await service.tokenFor({ kind: 'user', name: by, admin: by === 'admin@acme.dev' })
  const answer = await service.call(method, url, { token, body })
  assert.ok(answer.status < 300, `${method} ${url}: ${answer.text}`)
}

/** Sets the clock to a step, and lets the nodes report so that they stay ready. */
async function turnTo(step: number): Promise<void> {
  service.clock.nowMs = Date.now() - (steps - step) * stepMs
  for (const node of nodes) await node.report()
}

async function addImages(): Promise<void> {
  const at = timestamp(service.clock.now())
  for (const [name, architecture, sizeGib] of images) {
    const record = { name, description: '', architecture, sizeBytes: sizeGib * 2 ** 30, owner: 'admin@acme.dev' }
    await service.services.collections.images.create('', name, {
      ...record,
      createdAt: at,
      updatedAt: at,
      recipe: name,
    })
  }
}

const isFocused = (element: unknown): boolean => (element as { matches(css: string): boolean }).matches(':focus')

/** Images derived from one in a registry, and VMs, a configuration and a pool that use one of them. */
async function addLineage(): Promise<void> {
  const at = timestamp(service.clock.now())
  const gibibyte = 2 ** 30
  const version = (number: number, vm: string, by: string, bytesAdded: number) => ({
    version: number,
    at,
    content: `sha256:${String(number).repeat(64)}`,
    vm: `svc-default/${vm}`,
    by,
    bytesAdded,
  })
  const made = [
    [
      'sequoia-golden',
      'ghcr.io/acme/sequoia@sha256:77',
      undefined,
      [version(1, 'setup', 'ada@acme.dev', 21 * gibibyte)],
    ],
    [
      'sequoia-tools',
      'sequoia-golden',
      1,
      [
        version(1, 'xcode-upgrade', 'grace@acme.dev', 3.2 * gibibyte),
        version(2, 'xcode-upgrade', 'ada@acme.dev', 0.6 * gibibyte),
      ],
    ],
    ['sequoia-copy', 'sequoia-tools', 2, undefined],
    ['sequoia-release', 'sequoia-tools', 2, [version(1, 'ios-release', 'ci@acme.dev', 640 * 2 ** 20)]],
  ] as const
  for (const [name, parent, of, versions] of made) {
    const vm = versions?.at(-1)?.vm
    await service.services.collections.images.create('', name, {
      name,
      description: '',
      architecture: 'arm64',
      sizeBytes: 64 * gibibyte,
      spaceUsedBytes: 25 * gibibyte,
      owner: 'ada@acme.dev',
      createdAt: at,
      updatedAt: at,
      content: versions?.at(-1)?.content ?? version(2, '', '', 0).content,
      source: vm ?? 'sequoia-tools',
      sourceType: vm === undefined ? 'local' : 'vm',
      sourceNamespace: 'svc-default',
      ...(versions && { versions, version: versions.length }),
      parent: { image: parent, ...(of !== undefined && { version: of }), ...(vm !== undefined && { vm }) },
    })
  }
  const image = 'sequoia-tools'
  const [first, second] = nodes
  const copy = { key: version(2, '', '', 0).content, bytes: 25 * gibibyte }
  await first?.report({ cache: [{ ...copy, state: 'Ready' }] })
  await second?.report({ cache: [{ ...copy, state: 'Fetching', percent: 40 }] })
  await call('POST', `${ns}/vmconfigs`, { name: 'ios-tools', image, cpu: 4 })
  await call('POST', `${ns}/pools`, { name: 'warm-tools', config: 'ios-tools', maxIdle: 1, paused: true })
  for (let number = 1; number <= 7; number++)
    await call('POST', `${ns}/vms?wait=false`, { name: `tools-${number}`, image, cpu: 1 })
}

before(async () => {
  service = await startService({ consoleFolder: path.join(root, 'dist/console') })
  heartbeats = setInterval(() => {
    for (const { name } of nodes) service.services.fleet.seen(name)
  }, heartbeatSeconds * 1_000)
  await turnTo(0)
  scheduler = startScheduler(service)
  browser = await launchBrowser()
  await addImages()
  for (const [index, [name, has]] of hosts.entries()) {
    const ip = `10.20.4.${11 + index}`
    const report = {
      ...has,
      ip,
      driver: has.architecture === 'arm64' ? 'apple' : 'qemu',
      version: '3.0.0',
      os: 'macOS 15.1',
    }
    nodes.push(await startNode(service, { name, react, report: { ...report, images: images.map(([image]) => image) } }))
  }
  for (const [name] of hosts)
    await call('POST', `${ns}/nodes/${name}/tag`, { tag: name.includes('mini') ? 'ci' : 'release' })
  for (const [step, owner, name, image, node, cpu, memory] of vms) {
    await turnTo(step)
    const labels = { team: name.startsWith('ios') ? 'ios' : 'platform' }
    await call('POST', `${ns}/vms?wait=false`, { name, image, node, cpu, memory, labels }, owner)
  }
  await turnTo(162)
  await call('POST', `${ns}/vms/kext-lab/exec?wait=false`, { command: 'stop' }, 'ada@acme.dev')
  await call('POST', `${ns}/nodes/mac-mini-4/cordon`)
  await call('POST', `${ns}/vms/xcode-upgrade/save`, { imageName: 'sequoia-xcode-16.3' }, 'ada@acme.dev')
  await turnTo(steps)
  const listening = await service.listen()
  const token = await service.tokenFor({ kind: 'user', name: 'admin@acme.dev', admin: true })
  opened = await openConsole(browser, { apiUrl: listening }, token)
  page = opened.page
})
after(async () => {
  clearInterval(heartbeats)
  await browser.close()
  await scheduler[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

describe('the console of a fleet', () => {
  it('the console of a fleet counts VMs by power state and shows tasks and capacity', {
    timeout: 150_000,
  }, async () => {
    await go(page, service, '/')
    await page.getByText('62%').waitFor()
    assert.match(await page.locator('.figures').innerText(), /8\s+Running\s+0\s+Pending\s+1\s+Starting\s+1\s+Stopped/)
    await page.getByText('16 of 24 used').waitFor()
    await page.getByRole('img', { name: /^Request to running: p50 .* p95 / }).waitFor()
    await screenshot(page, 'console-overview')
    await page.setViewportSize({ width: 390, height: 844 })
    await go(page, service, '/vms')
    await page.getByRole('link', { name: 'kext-lab' }).waitFor()
    await screenshot(page, 'console-phone')
    await page.setViewportSize({ width: 1440, height: 900 })
  })

  it('the console of a fleet estimates the node of a VM', { timeout: 150_000 }, async () => {
    await go(page, service, '/vms?deploy')
    const form = page.getByRole('dialog')
    await form.getByLabel('Image', { exact: true }).fill('sequoia-xcode-16.2')
    await form.getByLabel('Name', { exact: true }).fill('ios-pr-4140')
    await form.getByLabel('Cores').fill('6')
    await form.getByLabel('Memory in GiB').fill('16')
    await form.locator('.note[data-tone=good]').waitFor()
    await form.getByRole('button', { name: 'Show as command' }).click()
    await form.getByText('svc3 vm deploy ios-pr-4140').waitFor()
    await screenshot(page, 'console-deploy')
  })

  it('the console of a fleet shows a VM with its addresses and power', { timeout: 150_000 }, async () => {
    await go(page, service, '/vms/svc-default/kext-lab')
    await page.locator('.page-head').getByText('Stopped', { exact: true }).waitFor()
    await page.locator('.page-head').getByText('Status Running').waitFor()
    // Stand-in nodes measure nothing; console.full.test.ts tests the charts.
    await page.route('**/vms/ios-release/charts*', (route) => route.fulfill({ json: { stepSeconds: 60, series: [] } }))
    await go(page, service, '/vms/svc-default/ios-release')
    await page.getByText('10.20.4.17:8822').waitFor()
  })

  it('the console of a fleet shows its nodes in the dark theme', { timeout: 150_000 }, async () => {
    await page.emulateMedia({ colorScheme: 'dark' })
    await go(page, service, '/nodes')
    await page
      .getByRole('row', { name: /mac-mini-4/ })
      .getByText('Cordoned')
      .waitFor()
    await screenshot(page, 'console-nodes-dark')
    await page.emulateMedia({ colorScheme: 'light' })
    assert.deepEqual(opened.complaints, [])
  })

  it('the console of a fleet shows many nodes as a map, and concerns first', {
    timeout: 300_000,
  }, async () => {
    for (let index = 1; index <= 60; index++)
      nodes.push(await startNode(service, { name: `rack-${index}`, react, report: { ...mini, driver: 'apple' } }))
    for (let index = 1; index <= 40; index++)
      await call('POST', `${ns}/vms?wait=false`, {
        name: `batch-${index}`,
        image: 'sequoia-base',
        node: `rack-${index}`,
        cpu: 1 + (index % 10),
        memory: 4,
      })
    await call('POST', `${ns}/nodes/rack-7/cordon`)
    service.clock.nowMs = Date.now() - 5 * 60_000
    await call('POST', `${ns}/vms?wait=false`, { name: 'waits', image: 'sequoia-base', node: 'rack-8', cpu: 10 })
    service.clock.nowMs = Date.now()
    await go(page, service, '/')
    const cells = page.locator('.cells a')
    await page.getByText('Needs attention').waitFor()
    await eventually(async () => assert.equal(await cells.count(), hosts.length + 60))
    const names = await cells.evaluateAll((all) => all.map((each) => each.getAttribute('aria-label') ?? ''))
    const racks = names.filter((name) => name.startsWith('rack-'))
    assert.deepEqual(
      racks.slice(0, 3).map((name) => name.split(':')[0]),
      ['rack-1', 'rack-2', 'rack-3'],
    )
    assert.match(racks[1] ?? '', /^rack-2: 30% used, 1 VM$/)
    assert.match(racks[6] ?? '', /cordoned$/)
    await page.getByRole('link', { name: '1 VM pending' }).waitFor()
    await assertAccessible(page, 'the overview of a fleet')
    await screenshot(page, 'console-fleet')
    // The cells are one tab stop; arrow keys move between them.
    assert.equal(await page.locator('.cells a[tabindex="0"]').count(), 1)
    await cells.first().focus()
    await page.keyboard.press('End')
    await focused(page.getByRole('link', { name: /^rack-60:/ }))
    for (let press = 0; press < 58; press++) await page.keyboard.press('ArrowLeft')
    await focused(page.getByRole('link', { name: /^rack-2:/ }))
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'rack-2', level: 1 }).waitFor()
    assert.deepEqual(opened.complaints, [])
  })

  it('the console of a fleet acts on several VMs after one confirmation that lists them', {
    timeout: 150_000,
  }, async () => {
    await go(page, service, '/vms')
    await page.getByRole('searchbox').fill('batch-1')
    await page.getByText('11 of 51 VMs').waitFor()
    await page.getByRole('checkbox', { name: 'Select all' }).check()
    await page.getByRole('checkbox', { name: 'Select svc-default/batch-10' }).uncheck()
    await page.getByText('10 selected').waitFor()
    await assertAccessible(page, 'the list of VMs with a selection')
    await page.getByRole('button', { name: 'Set expiry', exact: true }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('heading', { name: 'Set expiry: 10 VMs' }).waitFor()
    await dialog.getByLabel('Expires in').fill('3h')
    await dialog.getByRole('button', { name: 'Set expiry', exact: true }).click()
    await page.getByText('Expiry of 10 VMs set').waitFor()
    await page.getByRole('checkbox', { name: 'Select svc-default/batch-10' }).check()
    await page.getByRole('checkbox', { name: 'Select svc-default/batch-11' }).check()
    await page.getByRole('button', { name: 'Set labels', exact: true }).click()
    await dialog.getByText('batch-10', { exact: true }).waitFor()
    await dialog.getByLabel('Labels', { exact: true }).fill('team=nightly')
    await assertAccessible(page, 'the labels of several VMs')
    await dialog.getByRole('button', { name: 'Set labels', exact: true }).click()
    await page.getByText('Labels of 2 VMs changed').waitFor()
    await page.getByRole('searchbox').fill('team=nightly')
    await page.getByText('2 of 51 VMs').waitFor()
    await page.getByRole('searchbox').fill('batch-1')
    await page.getByText('11 of 51 VMs').waitFor()
    await page.getByRole('checkbox', { name: 'Select svc-default/batch-10' }).check()
    await page.getByRole('checkbox', { name: 'Select svc-default/batch-11' }).check()
    await page.getByRole('button', { name: 'Start', exact: true }).click()
    // Running VMs are skipped with a reason.
    await dialog.getByText(/^batch-10: ./).waitFor()
    await dialog.getByText('2 VMs are skipped').waitFor()
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('button', { name: 'Delete', exact: true }).click()
    await dialog.getByText('batch-11', { exact: true }).waitFor()
    await dialog.getByLabel('Type 2 to confirm').fill('2')
    await assertAccessible(page, 'the confirmation of several deletions')
    await screenshot(page, 'console-bulk')
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click()
    await page.getByText('2 VMs deleted').waitFor()
    await page.getByText('9 of 49 VMs').waitFor()
    assert.equal(await page.getByText('selected').count(), 0)
    assert.deepEqual(opened.complaints, [])
  })

  it('the console of a fleet sends no requests to a disconnected node', { timeout: 150_000 }, async () => {
    const node = service.services.collections.nodes.get('', 'mac-pro-1') ?? assert.fail()
    await service.services.collections.nodes.update(node, { ...node.value, isReady: false })
    const asked: string[] = []
    const note = (request: { url(): string }): void =>
      void (request.url().includes('/charts') && asked.push(request.url()))
    page.on('request', note)
    // The VM was stopped before its node disconnected, so its record does not show that the node is unreachable.
    await go(page, service, '/vms/svc-default/kext-lab')
    await page.getByText('Stopped', { exact: true }).first().waitFor()
    await page.waitForLoadState('networkidle')
    const away = service.services.collections.nodes.get('', 'mac-pro-1') ?? assert.fail()
    await service.services.collections.nodes.update(away, { ...away.value, isReady: true })
    // The requests resume without a reload once the node is back.
    await page.waitForRequest((request) => request.url().includes('/vms/kext-lab/charts'))
    page.off('request', note)
    assert.equal(asked.filter((url) => url.includes('/vms/')).length, 1)
  })

  it('the console of a fleet shows the lineage, caches and users of an image', {
    timeout: 150_000,
  }, async () => {
    await addLineage()
    await go(page, service, '/images/sequoia-tools')
    const tree = page.getByRole('list', { name: 'Lineage of sequoia-tools' })
    await tree.getByText('sequoia-release').waitFor()
    const rows = await tree.locator('.tree-row').allInnerTexts()
    assert.deepEqual(
      rows.map((row) => row.split('\n')),
      [
        ['ghcr.io/acme/sequoia@sha256:77', 'In a registry'],
        ['sequoia-golden', 'Saved from VM svc-default/setup', '+ 21 GiB'],
        ['sequoia-tools', 'Saved from VM svc-default/xcode-upgrade, from version 1', '+ 3.8 GiB'],
        ['sequoia-copy', 'Copy, from version 2', '+ 0 B'],
        ['sequoia-release', 'Saved from VM svc-default/ios-release, from version 2', '+ 640 MiB'],
      ],
    )
    const versions = page.getByRole('list', { name: 'Versions' })
    assert.match(await versions.innerText(), /Version 2\s+svc-default\/xcode-upgrade\s+by ada@acme\.dev/)
    // Five of seven VMs are listed by name; a link leads to all.
    const vmsUsing = page.getByRole('link', { name: '+ 2', exact: true })
    await page.getByRole('link', { name: 'ios-tools', exact: true }).waitFor()
    await page.getByRole('link', { name: 'warm-tools', exact: true }).waitFor()
    await page.getByText('Ready on 1 of 2 nodes').waitFor()
    await page.getByText('Downloading 40%').waitFor()
    await page.getByText('admin created image', { exact: false }).or(page.getByText('No events')).waitFor()
    await assertAccessible(page, 'the page of an image')
    await screenshot(page, 'console-image')
    await page.getByRole('button', { name: 'Show as command' }).click()
    await page.getByText('svc3 image show sequoia-tools').waitFor()
    await page.keyboard.press('Escape')
    await vmsUsing.click()
    await page.getByText(/^7 of \d+ VMs$/).waitFor()
    await go(page, service, '/images/sequoia-tools')
    await tree.getByRole('link', { name: 'sequoia-release' }).click()
    await page.getByRole('heading', { name: 'sequoia-release', level: 1 }).waitFor()
    assert.deepEqual(opened.complaints, [])
  })

  it('the console of a fleet finds VMs, nodes, images, pages and actions by Ctrl-K', { timeout: 150_000 }, async () => {
    await go(page, service, '/')
    await page.keyboard.press('Control+k')
    const finder = page.getByRole('dialog')
    const options = finder.getByRole('option')
    const find = async (text: string): Promise<void> => {
      await page.keyboard.press('Control+k')
      await focused(finder.getByRole('combobox'))
      await page.keyboard.type(text)
    }
    await options.getByText('Deploy VM').waitFor()
    await focused(finder.getByRole('combobox'))
    await page.keyboard.type('ios-pr')
    await options.getByText('ios-pr-4133').waitFor()
    assert.deepEqual(await options.locator('.strong').allInnerTexts(), ['ios-pr-4127', 'ios-pr-4131', 'ios-pr-4133'])
    await assertAccessible(page, 'the finder')
    await screenshot(page, 'console-finder')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'ios-pr-4131', level: 1 }).waitFor()
    assert.equal(await finder.count(), 0)
    await find('add node')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Add node' }).waitFor()
    await page.keyboard.press('Escape')
    // An action opens the same dialog as the menu, usable by keyboard.
    await find('cordon mac-mini-1')
    await options.getByText('Cordon: mac-mini-1', { exact: true }).waitFor()
    await assertAccessible(page, 'the finder with actions')
    await screenshot(page, 'console-finder-actions')
    await page.keyboard.press('Enter')
    const cordon = page.getByRole('dialog', { name: 'Cordon node mac-mini-1' })
    await cordon.waitFor()
    while (!(await cordon.getByRole('button', { name: 'Cordon', exact: true }).evaluate(isFocused)))
      await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.getByText('Node mac-mini-1 cordoned').waitFor()
    await find('mac-mini-1 cordon')
    await options.getByText('This node is already cordoned').waitFor()
    await page.keyboard.press('Enter')
    assert.equal(await finder.count(), 1, 'an unavailable action is shown with its reason and does nothing')
    await page.keyboard.press('Escape')
    // On the page of an object, its actions come first.
    await go(page, service, '/vms/svc-default/intel-regression')
    await find('stop')
    await options.getByText('Stop: intel-regression', { exact: true }).waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'Stop VM intel-regression' }).waitFor()
    await page.keyboard.press('Escape')
    await find('create pool')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog', { name: 'Create pool' }).waitFor()
    await page.keyboard.press('Escape')
    assert.deepEqual(opened.complaints, [])
  })
})
