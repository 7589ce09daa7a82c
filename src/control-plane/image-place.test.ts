// Images that are moved between the data folder and a registry by a backup, and servers with the wrong place.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { after, before, it } from 'node:test'
import { type RegistryProcess, registryUser, startRegistry } from '../../test/support/processes/registry.ts'
import { adminToken, ask } from '../../test/support/processes/shared-servers.ts'
import { restoreBackup } from '../operator/restore.ts'
import { silentLog } from '../platform/log.ts'
import { SettingsError } from '../server/config/settings.ts'
import { openStore } from '../store/open.ts'
import { writeBackup } from './backup-file.ts'
import { startControlPlane } from './control-plane.ts'
import { collectableIn, openImagePlace, openKnownPlace } from './image-place.ts'

let root: string
let registry: RegistryProcess
let address: string
const disk = randomBytes(3 * 65_536)

before(async () => {
  root = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-image-place-'))
  registry = await startRegistry({ folder: path.join(root, 'registry'), hasPassword: true })
  address = `oci+http://${registry.host}/moved/images`
})
after(async () => {
  await registry.kill()
  await fs.rm(root, { recursive: true, force: true })
})

const access = (): NodeJS.ProcessEnv => ({
  SVC3_IMAGES_USERNAME: registryUser.username,
  SVC3_IMAGES_PASSWORD: registryUser.password,
})

async function start(dataFolder: string, images?: string, environment: NodeJS.ProcessEnv = access()) {
  await fs.mkdir(dataFolder, { recursive: true })
  await fs.writeFile(path.join(dataFolder, 'config.json'), JSON.stringify({ logLevel: 'silent' }))
  const plane = await startControlPlane({
    dataFolder,
    images,
    host: '127.0.0.1',
    port: 0,
    environment,
    plainHttp: true,
  })
  return { ...plane, [Symbol.asyncDispose]: () => plane.stop() }
}

async function backedUp(dataDir: string, place: string): Promise<string> {
  const file = `${dataDir}.tar`
  const store = await openStore(`sqlite:${dataDir}`)
  const { content, close } = await openKnownPlace(place, dataDir, access())
  try {
    assert.equal((await writeBackup({ store, dataDir, file, withImages: true, content })).contents, 2)
    return file
  } finally {
    close()
    await store.close()
  }
}

async function restored(file: string, name: string, images: string | undefined): Promise<string> {
  const dataDir = path.join(root, name)
  const from = path.join(root, 'folder', 'master.key')
  await fs.mkdir(dataDir)
  await fs.copyFile(from, path.join(dataDir, 'master.key'))
  await restoreBackup({ file, dataDir, storeAddress: `sqlite:${dataDir}`, images, environment: access() })
  return dataDir
}

it('a registry is claimed, and its content protected, before anything is collected', async () => {
  const done: unknown[] = []
  const claim = async (cluster: string) => void done.push(['claimed', cluster])
  const mend = async (manifests: unknown) => {
    done.push(['mended', manifests])
    throw new Error('far enough')
  }
  const place = { content: { mend }, claim } as unknown as Parameters<typeof collectableIn>[0]
  const collected = collectableIn(place, () => 'uid').collect(() => ['sha256:a'] as never, {} as never)
  await assert.rejects(collected, /far enough/)
  assert.deepEqual(done, [
    ['claimed', 'uid'],
    ['mended', ['sha256:a']],
  ])
})

it('an unreadable password file refuses the start instead of counting as absent', async () => {
  const folder = await fs.mkdtemp(path.join(root, 'credentials-'))
  const credential = path.join(folder, 'svc3-images-password')
  const named = path.join(folder, 'named')
  await fs.writeFile(named, registryUser.password)
  const { username } = registryUser
  const open = (CREDENTIALS_DIRECTORY: string, passwordFile: string) => {
    const settings = { start: 'whole', username, passwordFile, cacheBytes: 1 } as const
    const environment = { CREDENTIALS_DIRECTORY }
    return openImagePlace({ address: `${address}/own`, settings, environment, dataFolder: folder, log: silentLog })
  }
  const faults: [() => Promise<unknown>, RegExp][] = [
    [() => fs.mkdir(credential), /cannot be read \(EISDIR\): it is a folder: put a file/],
    [() => fs.symlink('missing', credential), /cannot be read \(ENOENT\): it is a broken link/],
    [() => fs.writeFile(credential, '\n'), /is empty: put the password there/],
  ]
  for (const [make, problem] of faults) {
    await make()
    // The password file of the settings is readable, but must not be used instead.
    const refused = await open(folder, named).then(String, (error: Error) => error)
    assert.ok(refused instanceof SettingsError, `${problem} ${refused}`)
    assert.ok(refused.message.includes(`, the credential ${credential}, `), refused.message)
    assert.match(refused.message, problem)
    await fs.rm(credential, { recursive: true })
  }
  await assert.rejects(open(named, named), /named\/svc3-images-password, cannot be read \(ENOTDIR\)/)
  await assert.rejects(open('', path.join(folder, 'gone')), /images.passwordFile .*gone, is not there: correct config/)

  await fs.writeFile(credential, `${registryUser.password}\n`)
  for (const [directory, file] of [
    [folder, path.join(folder, 'gone')],
    [path.join(folder, 'none'), named],
  ] as const) {
    const place = await open(directory, file)
    await place.registry?.claim('credentials')
    place.close()
  }
})

it('images move from the folder to a registry and back, and a server refuses the wrong place', async () => {
  const folder = path.join(root, 'folder')
  {
    await using plane = await start(folder)
    const token = await adminToken(plane)
    const answer = await fetch(`${plane.localUrl}/api/v1/namespaces/svc-default/upload/image?name=disk&type=amd64`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/octet-stream' },
      body: disk,
    })
    assert.equal(answer.status, 201, await answer.text())
  }
  const isThere = async (dataFolder: string, images?: string): Promise<void> => {
    const environment = access()
    await using plane = await start(dataFolder, images, environment)
    assert.ok(!('SVC3_IMAGES_PASSWORD' in environment), 'no child inherits it')
    const token = await adminToken(plane)
    const answer = await ask(plane, 'GET', '/namespaces/svc-default/images/disk/download', { token })
    assert.ok(Buffer.from(await answer.arrayBuffer()).equals(disk))
  }
  await assert.rejects(
    start(folder, address),
    /are in the data folder, not in oci\+http:.*Start the server without --images/,
  )

  const inRegistry = await restored(await backedUp(folder, 'folder'), 'in-registry', address)
  await assert.rejects(start(inRegistry), /are in oci\+http:.*not in the data folder.*with --images oci\+http:/)
  await assert.rejects(start(inRegistry, `${address}/other`), /not in oci.*other/)
  const wrong = { ...access(), SVC3_IMAGES_PASSWORD: 'wrong-secret' }
  await assert.rejects(start(inRegistry, address, wrong), (error: Error) => {
    assert.match(error.message, /rejected the credentials/)
    return !error.message.includes('wrong-secret')
  })
  await assert.rejects(start(inRegistry, address, { SVC3_IMAGES_USERNAME: 'ci' }), /but no password/)
  await isThere(inRegistry, address)

  const file = await backedUp(inRegistry, address)
  await isThere(await restored(file, 'back', 'folder'))
  // Back to the folder, without an option.
  await isThere(await restored(file, 'same', undefined), address)
})
