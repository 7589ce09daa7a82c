// The console with real VMs, used only through the browser: deploy, terminal, screen, power, save, commit and push.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { openGuest, seedTiny } from '../support/guests/guest.ts'
import { type DevServer, makeFolder, startDev } from '../support/processes/dev-server.ts'
import { type RegistryProcess, registryUser, startRegistry } from '../support/processes/registry.ts'
import { choose, go, type Opened, openConsole } from '../support/rigs/console.ts'
import { launchBrowser, screenshot } from '../support/rigs/login.ts'
import { quickImage, quickWord, uploadQuick } from '../support/rigs/quick-images.ts'
import { eventually } from '../support/tools/eventually.ts'

const ns = '/api/v1/namespaces/svc-default'
/** Guests without KVM boot slowly. */
const bootMs = 120_000
let folder: string
let server: DevServer
let browser: Browser
let registry: RegistryProcess
let opened: Opened
let page: Page

before(async () => {
  folder = await makeFolder()
  const data = path.join(folder, 'data')
  await seedTiny(path.join(data, 'images'), ['amd64'])
  const starting = [
    startDev(data),
    launchBrowser(),
    startRegistry({ folder: path.join(folder, 'registry'), hasPassword: true }),
  ]
  ;[server, browser, registry] = (await Promise.all(starting)) as [DevServer, Browser, RegistryProcess]
  // Tests that do not look inside the guest use images that boot at once.
  for (const architecture of ['amd64', 'arm64'] as const) await uploadQuick(data, architecture)
  opened = await openConsole(browser, server, server.token)
  page = opened.page
})
after(async () => {
  await browser.close()
  // VMs keep running after the server stops, so they are deleted.
  const { body } = await server.call('GET', `${ns}/vms`)
  await Promise.all((body.items as { name: string }[]).map(({ name }) => server.call('DELETE', `${ns}/vms/${name}`)))
  await server.kill('SIGTERM')
  await registry.kill()
  await fs.rm(folder, { recursive: true, force: true })
})

const state = (word: string) => page.locator('.page-head').getByText(word, { exact: true })
const show = async (vm: string) => (await server.call('GET', `${ns}/vms/${vm}`)).body
const submit = async (label: string): Promise<void> => {
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: label, exact: true }).click()
  await dialog.waitFor({ state: 'detached', timeout: bootMs })
}

async function deploy(name: string, image: string): Promise<void> {
  await go(page, server, '/vms?deploy')
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Image', { exact: true }).fill(image)
  await dialog.getByLabel('Name', { exact: true }).fill(name)
  await dialog.getByLabel('Cores').fill('1')
  await dialog.getByLabel('Memory in GiB').fill('0.5')
  await dialog.locator('.note[data-tone=good]').waitFor()
  await screenshot(page, `console-real-deploy-${name}`)
  await submit('Deploy')
  await page.getByRole('heading', { name, level: 1 }).waitFor()
  await state('Running').waitFor({ timeout: bootMs })
}

describe('the console with real VMs', () => {
  it('the console with real VMs deploys a VM and shows when it runs', { timeout: 170_000 }, () =>
    deploy('demo', 'tiny-amd64'),
  )

  it('the console with real VMs opens a terminal', { timeout: 170_000 }, async () => {
    // A VM is Running before SSH responds.
    ;(await openGuest((await show('demo')) as never, {}, bootMs))[Symbol.dispose]()
    await go(page, server, '/vms/svc-default/demo/terminal')
    await page.getByLabel('Password').fill('wrong')
    await page.getByRole('button', { name: 'Open terminal' }).click()
    await page.locator('.note[role=status]').waitFor()
    await page.getByLabel('Password').fill('admin')
    await page.getByRole('button', { name: 'Open terminal' }).click()
    const rows = page.locator('.terminal')
    await rows
      .getByText(/[$#] *$/)
      .first()
      .waitFor()
    await page.keyboard.type('echo $((6 * 7))-by-hand\n')
    await rows.getByText('42-by-hand').first().waitFor()
    await screenshot(page, 'console-real-terminal')
  })

  it('the console with real VMs shows a screen, with keyboard, clipboard and full screen', {
    timeout: 170_000,
  }, async () => {
    using guest = await openGuest((await show('demo')) as never, {}, bootMs)
    await go(page, server, '/vms/svc-default/demo')
    await page.getByRole('button', { name: 'Screen', exact: true }).click()
    await page.getByText('Connected', { exact: true }).waitFor()
    // Pixels of the guest rather than of its firmware, whose screen is smaller.
    const canvas = page.locator('.screen canvas')
    await eventually(async () => {
      const { width, lit } = await canvas.evaluate(litPixels)
      assert.ok(width >= 1_024 && lit > 200, `${lit} lit pixels of a screen ${width} wide`)
    }, bootMs)
    // Logs in on the first virtual terminal. Each line is sent after the previous one took effect.
    const keys = page.getByLabel('Send keys')
    const type = async (line: string, isDone: (processes: string) => boolean): Promise<void> => {
      await keys.fill(line)
      await keys.press('Enter')
      await eventually(async () => assert.ok(isDone(await guest.run('ps')), `"${line}" had no effect`), bootMs)
    }
    await type('admin', (processes) => /login/.test(processes))
    await type('admin', (processes) => /admin +-sh/.test(processes))
    await type('sleep 4321', (processes) => /sleep 4321/.test(processes))
    await screenshot(page, 'console-real-screen')
    // A second viewer of the same screen receives the clipboard that the first one sent to QEMU, and the reverse.
    const other = await opened.context.newPage()
    await go(other, server, '/vms/svc-default/demo/screen')
    await other.getByText('Connected', { exact: true }).waitFor()
    const clipboardOf = (tab: Page) => tab.getByRole('textbox', { name: 'Clipboard' })
    for (const [from, to, text] of [
      [page, other, 'for the guest: é'],
      [other, page, 'from the guest: ü'],
    ] as const) {
      await clipboardOf(from).fill(text)
      await from.getByRole('button', { name: 'Send', exact: true }).last().click()
      await eventually(async () => assert.equal(await clipboardOf(to).inputValue(), text))
    }
    await other.close()
    await opened.context.grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.getByRole('button', { name: 'Copy clipboard' }).click()
    await eventually(async () =>
      assert.equal(await page.evaluate('navigator.clipboard.readText()'), 'from the guest: ü'),
    )
    await page.getByRole('button', { name: 'Full screen' }).click()
    const isFull = 'document.fullscreenElement?.classList.contains("screen") === true'
    await eventually(async () => assert.ok(await page.evaluate(isFull)))
    await page.evaluate('document.exitFullscreen()')
    await eventually(async () => assert.ok(!(await page.evaluate(isFull))))
    // The page of the VM has a thumbnail of the screen, and charts.
    await go(page, server, '/vms/svc-default/demo')
    await page.locator('.thumbnail canvas').waitFor()
    await page.locator('.chart canvas').first().waitFor()
    await screenshot(page, 'console-vm')
  })

  it('the console with real VMs stops, starts, suspends, resumes and reverts a VM', { timeout: 170_000 }, async () => {
    await deploy('fast', quickImage('amd64'))
    // The page has navigated away from this VM.
    assert.equal((await server.call('DELETE', `${ns}/vms/demo`)).status, 200)
    // Until it has booted, the guest ignores the power button.
    const headers = { authorization: `Bearer ${server.token}` }
    const log = async () => (await fetch(`${server.apiUrl}${ns}/vms/fast/logs`, { headers })).text()
    await eventually(async () => assert.ok((await log()).includes(quickWord)), bootMs)
    await choose(page, 'Actions', 'Suspend')
    await submit('Suspend')
    await state('Suspended').waitFor()
    await choose(page, 'Actions', 'Resume')
    await submit('Resume')
    await state('Running').waitFor()
    await choose(page, 'Actions', 'Stop')
    await submit('Stop')
    await state('Stopped').waitFor()
    await choose(page, 'Actions', 'Start')
    await submit('Start')
    await state('Running').waitFor()
    await choose(page, 'Actions', 'Revert')
    await page.getByLabel('Type fast to confirm').fill('fast')
    await submit('Revert')
    await state('Running').waitFor()
    assert.equal((await show('fast')).diskGeneration, 2)
  })

  it('the console with real VMs saves and commits a VM, with progress on the page of the image', {
    timeout: 170_000,
  }, async () => {
    await go(page, server, '/vms/svc-default/fast')
    await choose(page, 'Actions', 'Save as image')
    await page.getByLabel('Name of the new image').fill('fast-saved')
    await submit('Save as image')
    await go(page, server, '/images/fast-saved')
    await state('Ready').waitFor({ timeout: bootMs })
    const own = page.getByRole('list', { name: 'Lineage of fast-saved' }).locator('[aria-current]')
    assert.match(await own.innerText(), /Saved from VM svc-default\/fast, from version 1\s+\+ [\d.]+ [KM]iB/)
    await page.getByRole('list', { name: 'Events' }).getByText('Image fast-saved saved from VM fast').waitFor()
    await screenshot(page, 'console-real-image')
    await deploy('second', 'fast-saved')
    await choose(page, 'Actions', 'Commit to image')
    await submit('Commit to image')
    // The page of the image lists its versions and its parent.
    await go(page, server, '/images/fast-saved')
    const versions = page.getByRole('list', { name: 'Versions' })
    await versions.getByText('Version 2').waitFor({ timeout: bootMs })
    await state('Ready').waitFor()
    assert.match(
      await versions.innerText(),
      /Version 2\s+svc-default\/second\s+by [\s\S]*Version 1\s+svc-default\/fast/,
    )
    const { body } = await server.call('GET', `${ns}/images/fast-saved`)
    assert.deepEqual(body.parent, { image: quickImage('amd64'), version: 1, vm: 'svc-default/fast' })
  })

  it('the console with real VMs pushes an Apple silicon VM and shows its progress', {
    timeout: 170_000,
  }, async () => {
    const { username, password } = registryUser
    await deploy('mac', quickImage('arm64'))
    await choose(page, 'Actions', 'Push to registry')
    const push = page.getByRole('dialog', { name: 'Push VM mac to a registry' })
    await push.getByLabel('Image reference').fill(`${registry.host}/team/mac:1`)
    // The registry has no stored credentials: they are added from here, and the typed reference is kept.
    await push.getByRole('button', { name: 'Push to registry', exact: true }).click()
    await push.getByRole('alert').waitFor()
    await push.getByRole('button', { name: 'Add credentials' }).click()
    const add = page.getByRole('dialog', { name: 'Add registry credentials' })
    await add.getByLabel('Registry', { exact: true }).fill(registry.server)
    await add.getByLabel('User name').fill(username)
    await add.getByLabel('Password').fill(password)
    if (registry.server.startsWith('http:')) await add.getByLabel('Allow plain HTTP').check()
    await add.getByRole('button', { name: 'Add credentials' }).click()
    await add.waitFor({ state: 'detached' })
    await push.getByRole('alert').waitFor({ state: 'detached' })
    await push.getByRole('button', { name: 'Push to registry', exact: true }).click()
    await push.waitFor({ state: 'detached', timeout: bootMs })
    await go(page, server, '/pushes')
    const job = page.getByRole('row').filter({ hasText: `${registry.host}/team/mac:1` })
    await job.getByRole('progressbar').waitFor()
    await job.getByText('Succeeded', { exact: true }).waitFor({ timeout: bootMs })
    await job.getByText(/sha256:[0-9a-f]{64}/).waitFor()
    await screenshot(page, 'console-real-push')
  })

  it('the console with real VMs logs no errors in the browser', () => {
    // Except for the refusal that the push test provokes.
    assert.deepEqual(
      opened.complaints.filter((each) => !each.includes('409')),
      [],
    )
  })
})

/** The width of a canvas and the number of its bright pixels. */
function litPixels(element: unknown): { width: number; lit: number } {
  const surface = element as {
    width: number
    height: number
    getContext(kind: '2d'): { getImageData(...box: number[]): { data: Uint8ClampedArray } }
  }
  const { width, height } = surface
  const { data } = surface.getContext('2d').getImageData(0, 0, width, height)
  let lit = 0
  for (let index = 0; index < data.length; index += 4) if ((data[index] ?? 0) > 100) lit++
  return { width, lit }
}
