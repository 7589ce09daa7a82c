// `tart create --from-ipsw`, the first boot of macOS 27, and `tart push` of the stand-in. An IPSW is a JSON file here that names the files of a VM. Lines and
// errors are those of tart: from its sources, and from openai/tart issue 1261. The push is done by svc3's own client, so it
// does not show that a registry takes what tart sends.
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import ssh2 from 'ssh2'
import { openRegistry } from '../../../../src/oci/registry/registry.ts'
import { parseImageReference } from '../../../../src/rules/image-reference.ts'
import { putTart } from '../tart.ts'
import { failStart, readFaults } from './faults.ts'
import { addressOf, lock, readConfig, StandInError, vmFolder, vmsFolder } from './folder.ts'

interface StandInIpsw {
  readonly ipsw: 'stand-in'
  readonly disk: string
  readonly nvram: string
  readonly config: string
}

const home = (): string => path.dirname(vmsFolder())
const print = (line: string): void => void process.stdout.write(`${line}\n`)
/** Foundation's text of an error of Apple's framework. */
const failure = (text: string): StandInError => new StandInError(`Error: ${text}`)

const installErrors = {
  update: 'A software update is required to complete the installation. Installation requires a software update.',
  space: 'An error occurred during installation. The host is out of disk space.',
  failed: 'An error occurred during installation. Installation failed.',
} as const
export type InstallFault = keyof typeof installErrors | 'hangs'

/** As tart before each command: temporary files go whose process is killed, and has lost its locks, also as a zombie. */
export function collectGarbage(): void {
  const folder = path.join(home(), 'tmp')
  for (const pid of fs.existsSync(folder) ? fs.readdirSync(folder) : [])
    if (!isRunning(pid)) fs.rmSync(path.join(folder, pid), { recursive: true })
}

function isRunning(pid: string): boolean {
  try {
    return !/\) [ZX] /.test(fs.readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

export async function installMacos(name: string, source: string, gigabytes: number): Promise<void> {
  if (!Number.isInteger(gigabytes) || gigabytes < 1 || gigabytes > 65_535)
    throw new StandInError(`Error: The value '${gigabytes}' is invalid for '--disk-size <disk-size>'`, 64)
  const latest = path.join(home(), 'stand-in.ipsw')
  if (source === 'latest') {
    print('Looking up the latest supported IPSW...')
    print('Fetching UniversalMac_Restore.ipsw...')
    for (const percent of [0, 50, 100]) print(`${percent}%`)
  }
  const ipsw = readIpsw(source === 'latest' ? latest : source)
  const temporary = path.join(home(), 'tmp', String(process.pid))
  fs.mkdirSync(temporary, { recursive: true })
  fs.copyFileSync(ipsw.disk, path.join(temporary, 'disk.img'))
  fs.copyFileSync(ipsw.nvram, path.join(temporary, 'nvram.bin'))
  print('Installing OS...')
  print('0%')
  const fault = readFaults().install
  if (fault === 'hangs') await sleep(600_000)
  else if (fault) throw failure(installErrors[fault])
  for (const percent of [1, 50, 100]) print(`${percent}%`)
  fs.copyFileSync(ipsw.config, path.join(temporary, 'config.json'))
  fs.writeFileSync(path.join(temporary, 'stand-in.disk-size'), String(gigabytes))
  fs.mkdirSync(vmsFolder(), { recursive: true })
  fs.rmSync(vmFolder(name), { recursive: true, force: true })
  fs.renameSync(temporary, vmFolder(name))
}

function readIpsw(file: string): StandInIpsw {
  try {
    const ipsw = JSON.parse(fs.readFileSync(file, 'utf8')) as StandInIpsw
    if (ipsw.ipsw === 'stand-in') return ipsw
  } catch {
    // The same for a missing file.
  }
  throw failure('The restore image failed to load. The restore image is invalid.')
}

export async function pushVm(name: string, remote: string, isPlain: boolean): Promise<void> {
  const parsed = parseImageReference(remote, 'push')
  if (!parsed.ok) throw new StandInError(`Error: ${parsed.problem}`)
  const { registry, repository, tag = '' } = parsed.reference
  print(`pushing ${name} to ${registry}/${repository}:${tag}...`)
  print('pushing config...')
  const policy = { allowPrivate: true, allowLoopback: true }
  const server = `${isPlain ? 'http' : 'https'}://${registry}`
  const connected = openRegistry({ server, allowInsecure: isPlain, policy })
  try {
    print('pushing disk... this will take a while...')
    print('0%')
    const file = (one: string) => fs.readFileSync(path.join(vmFolder(name), one))
    const disk = { disk: file('disk.img'), layerBytes: 2 ** 29, nvram: file('nvram.bin') }
    await putTart(connected.repository(repository), tag, { ...disk, config: readConfig(name) })
    print('100%')
    print('pushing NVRAM...')
    print(`pushing manifest for ${tag}...`)
  } catch (error) {
    const [code = ''] = /\b40[13]\b/.exec(String(error)) ?? []
    if (code === '' && !/credential|password|log in/i.test(String(error))) throw error
    throw new StandInError(
      `Error: UnexpectedHTTPStatusCode(when: "pushing blob (POST)", code: ${code || '401'}, details: "")`,
    )
  } finally {
    connected.close()
  }
}

/**
 * The first boot with `--provisioning-opts`, without a guest: an SSH server that knows the user and a command, which macOS
 * has after a minute.
 */
export async function createUser(name: string, options: string): Promise<void> {
  await failStart()
  const config = readConfig(name)
  const { username, password, enablesRemoteLogin } = Object.fromEntries(options.split(',').map((one) => one.split('=')))
  lock(name, config, 'dhcp')
  if (enablesRemoteLogin !== 'true') await sleep(600_000)
  const { privateKey } = generateKeyPairSync('rsa', {
    modulusLength: 2_048,
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
    publicKeyEncoding: { type: 'pkcs1', format: 'pem' },
  })
  const { promise: isDown, resolve: powerOff } = Promise.withResolvers<void>()
  const server = new ssh2.Server({ hostKeys: [privateKey] }, (client) => {
    client.on('error', () => undefined)
    client.on('authentication', (login) => {
      if (login.method === 'password' && login.username === username && login.password === password) login.accept()
      else login.reject(['password'])
    })
    client.on('session', (accept) =>
      accept().on('exec', async (acceptExec, _, { command }) => {
        const channel = acceptExec()
        const isAllowed = command === "sudo -S -p '' shutdown -h now" && (await text(channel)) === `${password}\n`
        channel.exit(isAllowed ? 0 : 1)
        channel.end()
        if (!isAllowed) return
        fs.writeFileSync(path.join(vmFolder(name), 'disk.img'), `provisioned for ${username}\n`, { flag: 'r+' })
        powerOff()
      }),
    )
  })
  await sleep(500)
  server.listen(22, addressOf(config.macAddress))
  await once(server, 'listening')
  await isDown
  process.exit()
}
