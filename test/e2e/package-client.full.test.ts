// `svc3/client` as its users have it: installed from what `npm pack` makes into an empty folder, without a network. The lines of
// docs/typescript-client.md are checked by tsc and run there, on this Node and on every other one of the machine.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import readline from 'node:readline'
import { after, before, describe, it } from 'node:test'
import tls from 'node:tls'
import { exec } from '../../src/platform/exec.ts'
import { seedTiny } from '../support/guests/guest.ts'
import { type DevServer, makeFolder, root, startDev } from '../support/processes/dev-server.ts'
import { launchBrowser } from '../support/rigs/login.ts'
import { eventually } from '../support/tools/eventually.ts'
import { ownAddress } from '../support/tools/own-address.ts'

const timeoutMs = 390_000
let folder: string
let user: string
let dev: DevServer
let env: Record<string, string>
let blocks: readonly { readonly language: string; readonly text: string }[]

/** This Node, and an older one that the machine has besides. */
const nodes = [
  process.execPath,
  ...(process.env.PATH ?? '')
    .split(':')
    .map((place) => path.join(place, 'node'))
    .filter((file) => existsSync(file)),
]

async function versionsOfNode(): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for (const file of nodes) {
    const version = (await exec(file, ['--version'], { cwd: root, env, timeoutMs })).stdout.trim()
    if (Number(/^v(\d+)/.exec(version)?.[1]) >= 20 && !found.has(version)) found.set(version, file)
  }
  return found
}

before(async () => {
  folder = await makeFolder()
  user = path.join(folder, 'user')
  env = {
    PATH: `${path.dirname(process.execPath)}:${process.env.PATH ?? ''}`,
    HOME: folder,
    npm_config_cache: path.join(folder, 'npm-cache'),
    npm_config_userconfig: path.join(folder, 'npmrc'),
    npm_config_loglevel: 'error',
  }
  const page = await fs.readFile(path.join(root, 'docs/typescript-client.md'), 'utf8')
  blocks = [...page.matchAll(/^```(js|ts)\n(.*?)^```$/gms)].map(([, language = '', text = '']) => ({ language, text }))
  const packed = await exec('npm', ['pack', '--ignore-scripts', '--pack-destination', folder], {
    cwd: root,
    env,
    timeoutMs,
  })
  const tarball = path.join(folder, packed.stdout.trim().split('\n').at(-1) ?? '')
  await fs.mkdir(user)
  await fs.writeFile(path.join(user, 'package.json'), '{"type":"module"}')
  await exec('npm', ['install', '--offline', '--no-audit', '--no-fund', tarball], { cwd: user, env, timeoutMs })
  // The password of the small guests, for ssh.
  await fs.writeFile(path.join(folder, 'askpass'), '#!/bin/sh\necho admin\n', { mode: 0o755 })
  await seedTiny(path.join(folder, 'data/images'), ['amd64'])
  dev = await startDev(path.join(folder, 'data'), { listen: `${ownAddress()}:0` })
  env = {
    ...env,
    SVC3_API_URL: dev.apiUrl,
    SVC3_TOKEN: dev.token,
    SSH_ASKPASS: path.join(folder, 'askpass'),
    SSH_ASKPASS_REQUIRE: 'force',
  }
})
after(async () => {
  await dev.kill('SIGTERM')
  await fs.rm(folder, { recursive: true, force: true })
})

const write = (name: string, text: string): Promise<void> => fs.writeFile(path.join(user, name), text)

describe('svc3/client from the package', () => {
  it('the client comes with its types, without packages, and imports nothing', async () => {
    assert.deepEqual(
      (await fs.readdir(path.join(user, 'node_modules'))).filter((name) => !name.startsWith('.')),
      ['svc3'],
    )
    const inside = path.join(user, 'node_modules/svc3/dist/client')
    assert.deepEqual((await fs.readdir(inside)).sort(), ['index.d.ts', 'index.js', 'operations.d.ts', 'options.d.ts'])
    const code = await fs.readFile(path.join(inside, 'index.js'), 'utf8')
    assert.doesNotMatch(code, /^\s*import\b|\bimport\(|\brequire\(|node:|\bprocess\b|withResolvers/m)
  })

  it('every block of code of docs/typescript-client.md has right types, for users with and without the DOM', async () => {
    assert.ok(blocks.length >= 4)
    const head = "import type { Client } from 'svc3/client'\ndeclare const svc3: Client\n"
    for (const [index, { language, text }] of blocks.entries())
      await write(`block-${index}.ts`, language === 'js' ? text : `${head}${text}\nexport {}\n`)
    const files = blocks.map((_, index) => `block-${index}.ts`)
    const tsc = path.join(root, 'node_modules/typescript/bin/tsc')
    const strict = ['--noEmit', '--strict', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess']
    const modules = ['--target', 'es2022', '--module', 'nodenext']
    const types = ['--typeRoots', path.join(root, 'node_modules/@types'), '--types', 'node']
    for (const lib of ['es2022', 'es2022,dom'])
      await exec(process.execPath, [tsc, ...strict, ...modules, ...types, '--lib', lib, ...files], {
        cwd: user,
        env,
        timeoutMs,
      })
  })

  it('the lines of docs/typescript-client.md deploy a VM, log in by SSH and delete it, on each Node', async (test) => {
    await write('deploy.mjs', blocks.find(({ language }) => language === 'js')?.text ?? '')
    for (const [version, node] of await versionsOfNode()) {
      test.diagnostic(`Node ${version}`)
      const { stdout } = await exec(node, ['deploy.mjs'], { cwd: user, env, timeoutMs })
      assert.match(stdout, /^Linux .* x86_64 /, version)
    }
    assert.deepEqual((await dev.call('GET', '/api/v1/namespaces/svc-default/vms')).body, { items: [] })
  })

  it('a watch goes through kill -9 of the service without a gap, on each Node', async () => {
    await write(
      'watch.js',
      `import { createClient } from 'svc3/client'
      const controller = new AbortController()
      const client = createClient({ url: process.env.SVC3_API_URL, token: () => process.env.SVC3_TOKEN })
      for await (const { type, object } of client.watch('listRegistryCredentials', { signal: controller.signal })) {
        console.log(type, object.server ?? '')
        if (object.server === 'https://last.example') controller.abort()
      }
      console.log('ended')`,
    )
    const at = '/api/v1/namespaces/svc-default/secrets/registrycredentials'
    const add = async (server: string): Promise<void> => {
      const body = { server, username: 'bot', password: 'not-a-real-password' }
      assert.equal((await dev.call('POST', `${at}/add`, body)).status, 201)
    }
    for (const [version, node] of await versionsOfNode()) {
      const child = spawn(node, ['watch.js'], { cwd: user, env, stdio: ['ignore', 'pipe', 'inherit'] })
      // It may end before the answer to the last change is here.
      const closed = once(child, 'close')
      const lines: string[] = []
      readline.createInterface(child.stdout).on('line', (line) => lines.push(line))
      await eventually(async () => assert.deepEqual(lines, ['BOOKMARK ']), 60_000)
      await add('https://first.example')
      await eventually(async () => assert.equal(lines.at(-1), 'ADDED https://first.example'), 60_000)
      const { host } = new URL(dev.apiUrl)
      await dev.kill('SIGKILL')
      dev = await startDev(path.join(folder, 'data'), { listen: host })
      await add('https://last.example')
      await closed
      const changes = lines.filter((line) => !line.startsWith('BOOKMARK'))
      assert.deepEqual(changes, ['ADDED https://first.example', 'ADDED https://last.example', 'ended'], version)
      for (const server of ['https://first.example', 'https://last.example'])
        assert.equal((await dev.call('DELETE', `${at}/remove`, { server })).status, 200)
    }
  })

  it('a server with a self-signed certificate is refused with a reason, and trusted by NODE_EXTRA_CA_CERTS', async () => {
    const url = new URL(dev.apiUrl.replace('http:', 'https:'))
    const socket = tls.connect({ host: url.hostname, port: Number(url.port), rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    await write('svc3.pem', socket.getPeerX509Certificate()?.toString() ?? '')
    socket.destroy()
    await write(
      'secure.js',
      `import { createClient } from 'svc3/client'
      const { version } = await createClient({ url: '${url.origin}' }).getClusterInfo().catch(({ fault, message }) => {
        console.log(fault, message)
        return {}
      })
      console.log(typeof version)`,
    )
    for (const [version, node] of await versionsOfNode()) {
      const refused = await exec(node, ['secure.js'], { cwd: user, env, timeoutMs })
      assert.match(refused.stdout, /^unusable .*certificate.*\nundefined\n$/i, version)
      const trusting = { ...env, NODE_EXTRA_CA_CERTS: 'svc3.pem' }
      assert.equal(
        (await exec(node, ['secure.js'], { cwd: user, env: trusting, timeoutMs })).stdout,
        'string\n',
        version,
      )
    }
  })

  it('the client works in a page of a browser: calls, errors and a watch that ends', async () => {
    const browser = await launchBrowser()
    try {
      const page = await browser.newPage()
      const code = await fs.readFile(path.join(user, 'node_modules/svc3/dist/client/index.js'), 'utf8')
      await page.route('**/client-test/**', (route) =>
        route.request().url().endsWith('.js')
          ? route.fulfill({ contentType: 'text/javascript', body: code })
          : route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>client</title>' }),
      )
      await page.goto(`${dev.apiUrl}/client-test/`)
      // As text: what runs in the page is none of this program's modules.
      const script = `(async () => {
        const { ApiError, createClient } = await import('/client-test/index.js')
        const svc3 = createClient({ url: location.origin, token: ${JSON.stringify(dev.token)} })
        const body = { name: 'page', image: 'tiny-amd64' }
        const config = await svc3.createVmConfig({ body })
        const missing = await svc3.getVm({ vm: 'nobody' }).catch((error) => error)
        const controller = new AbortController()
        const seen = []
        for await (const { type, object } of svc3.watch('listVmConfigs', { signal: controller.signal })) {
          seen.push(type + ' ' + (object.name ?? ''))
          if (type === 'BOOKMARK' && seen.length === 2) await svc3.deleteVmConfig({ vmconfig: config.name })
          if (type === 'DELETED') controller.abort()
        }
        return [config.name, missing instanceof ApiError, missing.status, seen]
      })()`
      const expected = ['page', true, 404, ['ADDED page', 'BOOKMARK ', 'DELETED page']]
      assert.deepEqual(await page.evaluate(script), expected)
    } finally {
      await browser.close()
    }
  })
})
