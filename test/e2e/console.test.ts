// The console with real VMs: deployed, seen, typed into, switched, saved, committed and pushed, by somebody who has nothing
// but a browser; and a file that is dropped onto a page.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import path from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { choose, go, type Opened, openConsole } from '../support/console.ts'
import { type DevServer, makeFolder, startDev } from '../support/dev-server.ts'
import { eventually } from '../support/eventually.ts'
import { openGuest, seedTiny } from '../support/guest.ts'
import { launchBrowser, screenshot } from '../support/login.ts'
import { type RegistryProcess, registryUser, startRegistry } from '../support/registry.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'

const ns = '/api/v1/namespaces/svc-default'
/** Guests without KVM take their time. */
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
  await seedTiny(path.join(data, 'images'), ['amd64', 'arm64'])
  const starting = [
    startDev(data),
    launchBrowser(),
    startRegistry({ folder: path.join(folder, 'registry'), hasPassword: true }),
  ]
  ;[server, browser, registry] = (await Promise.all(starting)) as [DevServer, Browser, RegistryProcess]
  opened = await openConsole(browser, server, server.token)
  page = opened.page
})
after(async () => {
  await browser.close()
  await server[Symbol.asyncDispose]()
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
  await dialog.getByText('it would go to node').waitFor()
  await screenshot(page, `console-real-deploy-${name}`)
  await submit('Deploy')
  await page.getByRole('heading', { name, level: 1 }).waitFor()
  await state('running').waitFor({ timeout: bootMs })
}

describe('the console with real VMs', () => {
  it('deploys a VM, shows its screen, and types into it', { timeout: 170_000 }, async () => {
    await deploy('demo', 'tiny-amd64')
    using guest = await openGuest((await show('demo')) as never, {}, bootMs)
    await page.getByRole('button', { name: 'Screen', exact: true }).click()
    await page.getByText('Connected', { exact: true }).waitFor()
    const canvas = page.locator('.screen canvas')
    // The pixels of the guest: something is written on its screen.
    await eventually(async () => {
      const lit = await canvas.evaluate((element) => {
        const surface = element as unknown as {
          width: number
          height: number
          getContext(kind: '2d'): { getImageData(...box: number[]): { data: Uint8ClampedArray } }
        }
        const { data } = surface.getContext('2d').getImageData(0, 0, surface.width, surface.height)
        let count = 0
        for (let index = 0; index < data.length; index += 4) if ((data[index] ?? 0) > 100) count++
        return count
      })
      assert.ok(lit > 200, `${lit} lit pixels`)
    }, 30_000)
    await screenshot(page, 'console-real-screen')
    // The login on its first terminal, key by key, until what was typed has happened.
    const keys = page.getByLabel('Send keys')
    await eventually(async () => {
      for (const line of ['admin', 'admin', 'touch /tmp/typed-in-the-page']) {
        await keys.fill(line)
        await keys.press('Enter')
        await new Promise((resolve) => setTimeout(resolve, 1_500))
      }
      assert.equal(await guest.run('ls /tmp/typed-in-the-page'), '/tmp/typed-in-the-page')
    }, 60_000)
  })

  it('opens a terminal in it', { timeout: 170_000 }, async () => {
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

  it('stops, starts, suspends, resumes and reverts it', { timeout: 170_000 }, async () => {
    await go(page, server, '/vms/svc-default/demo')
    await choose(page, 'Actions', 'Suspend')
    await submit('Suspend')
    await state('suspended').waitFor()
    await choose(page, 'Actions', 'Resume')
    await submit('Resume')
    await state('running').waitFor()
    await choose(page, 'Actions', 'Stop')
    await submit('Stop')
    await state('stopped').waitFor()
    await choose(page, 'Actions', 'Start')
    await submit('Start')
    await state('running').waitFor()
    await choose(page, 'Actions', 'Revert')
    await page.getByLabel('Type demo to confirm').fill('demo')
    await submit('Revert')
    await state('running').waitFor()
    assert.equal((await show('demo')).diskGeneration, 2)
  })

  it('saves it, and commits it, with progress on the page of the image', { timeout: 170_000 }, async () => {
    await go(page, server, '/vms/svc-default/demo')
    await choose(page, 'Actions', 'Save as image')
    await page.getByLabel('Name of the new image').fill('demo-saved')
    await submit('Save as image')
    await go(page, server, '/images/demo-saved')
    await state('Ready').waitFor({ timeout: bootMs })
    await page.getByRole('img', { name: 'Lineage of demo-saved' }).waitFor()
    await screenshot(page, 'console-real-image')
    await deploy('second', 'demo-saved')
    await choose(page, 'Actions', 'Commit to image')
    await submit('Commit to image')
    const before = (await server.call('GET', `${ns}/images/demo-saved`)).body.resourceVersion
    await eventually(async () => {
      const { body } = await server.call('GET', `${ns}/images/demo-saved`)
      assert.equal(body.state, 'Ready')
      assert.notEqual(body.resourceVersion, before)
    }, bootMs)
  })

  it('pushes an Apple silicon-based one, and shows how far it is', { timeout: 170_000 }, async () => {
    const { username, password } = registryUser
    const body = { server: registry.server, username, password, allowInsecure: registry.server.startsWith('http:') }
    assert.equal((await server.call('POST', `${ns}/secrets/registrycredentials/add`, body)).status, 201)
    await deploy('mac', 'tiny-arm64')
    await choose(page, 'Actions', 'Push to registry')
    await page.getByLabel('Image reference').fill(`${registry.host}/team/mac:1`)
    await submit('Push to registry')
    await go(page, server, '/pushes')
    const job = page.getByRole('region', { name: `${registry.host}/team/mac:1` })
    await job.getByRole('progressbar').waitFor()
    await job.getByText('Succeeded', { exact: true }).waitFor({ timeout: bootMs })
    await job.getByText(/sha256:[0-9a-f]{64}/).waitFor()
    await screenshot(page, 'console-real-push')
  })

  it('uploads a file that is dropped onto it, also over a cut connection', { timeout: 170_000 }, async () => {
    await using proxy = await startTcpProxy(Number(new URL(server.apiUrl).port))
    const through = { apiUrl: `http://127.0.0.1:${proxy.port}` }
    await using own = await openConsole(browser, through, server.token)
    await go(own.page, through, '/isos')
    await own.page.getByRole('button', { name: 'Upload', exact: true }).first().click()
    const content = randomBytes(17 * 1_048_576)
    const file = path.join(folder, 'installer.iso')
    await fs.writeFile(file, content)
    const dialog = own.page.getByRole('dialog')
    await dropFile(own.page, file)
    await dialog.getByText('installer.iso, 17M').waitFor()
    // All connections are lost while the second piece is on its way.
    await own.page.route(
      '**/uploads/*?offset=8388608',
      async (route) => {
        proxy.cut()
        await route.abort()
      },
      { times: 1 },
    )
    await dialog.getByRole('button', { name: 'Upload', exact: true }).click()
    await dialog.waitFor({ state: 'detached', timeout: 60_000 })
    await own.page
      .getByRole('row', { name: /installer\.iso/ })
      .getByText('Ready')
      .waitFor()
    const answer = await fetch(`${server.apiUrl}${ns}/isos/installer.iso/download`, {
      headers: { authorization: `Bearer ${server.token}` },
    })
    assert.ok(Buffer.from(await answer.arrayBuffer()).equals(content))
  })

  it('said nothing against itself', () => assert.deepEqual(opened.complaints, []))
})

/** As from a file manager. */
async function dropFile(page: Page, file: string): Promise<void> {
  const bytes = (await fs.readFile(file)).toString('base64')
  const transfer = await page.evaluateHandle(
    `(() => {
      const bytes = Uint8Array.from(atob(${JSON.stringify(bytes)}), (letter) => letter.charCodeAt(0))
      const transfer = new DataTransfer()
      transfer.items.add(new File([bytes], ${JSON.stringify(path.basename(file))}, { lastModified: 1 }))
      return transfer
    })()`,
  )
  await page.locator('.drop').dispatchEvent('drop', { dataTransfer: transfer })
}
