// Debian's docker-registry as a process, with a password or TLS if requested. It can be killed and started again on its
// data.
import { type ChildProcess, spawn } from 'node:child_process'
import fs from 'node:fs/promises'
import path from 'node:path'
import { createInterface } from 'node:readline'
import type { TestPair } from '../tools/certificates.ts'
import { freePort } from '../tools/free-port.ts'
import { endService } from './leftovers.ts'

/** With bcrypt at its lowest cost, because every request pays for it. */
export const registryUser = { username: 'ci', password: 'canary-Pa55:w/rd%' } as const
const htpasswd = 'ci:$2b$05$abcdefghijklmnopqrstuuSiQCkMxHXyKFPAqaBhQ0SRTMw9JhM0S\n'

export interface RegistryProcess {
  readonly server: string
  /** As in references. */
  readonly host: string
  readonly folder: string
  readonly pid: number
  /** By kill -9. */
  kill(): Promise<void>
  /** On the same port. */
  start(): Promise<void>
}

interface RegistryWanted {
  readonly folder: string
  readonly hasPassword?: boolean
  readonly tls?: TestPair
  /** An address that only this registry uses, so that it is found at the same port again. */
  readonly address?: string
  /** Whether manifests may be deleted. Default: true. */
  readonly mayDelete?: boolean
}

export async function startRegistry(wanted: RegistryWanted): Promise<RegistryProcess> {
  const { folder, hasPassword = false, tls, address = '127.0.0.1', mayDelete = true } = wanted
  await fs.mkdir(folder, { recursive: true })
  const file = (name: string) => path.join(folder, name)
  await fs.writeFile(file('htpasswd'), htpasswd)
  if (tls) await Promise.all([fs.writeFile(file('cert.pem'), tls.cert), fs.writeFile(file('key.pem'), tls.key)])
  const port = await freePort()
  let child: ChildProcess

  async function start(): Promise<void> {
    const settings = {
      version: '0.1',
      log: { level: 'info', formatter: 'json' },
      storage: { filesystem: { rootdirectory: file('data') }, delete: { enabled: mayDelete } },
      http: {
        addr: `${address}:${port}`,
        ...(tls && { tls: { certificate: file('cert.pem'), key: file('key.pem') } }),
      },
      ...(hasPassword && { auth: { htpasswd: { realm: 'test', path: file('htpasswd') } } }),
    }
    // JSON is YAML.
    await fs.writeFile(file('config.yml'), JSON.stringify(settings))
    child = spawn('docker-registry', ['serve', file('config.yml')], { stdio: ['ignore', 'ignore', 'pipe'] })
    endService(child)
    await listening(child)
  }

  await start()
  return {
    server: `${tls ? 'https' : 'http'}://${address}:${port}`,
    host: `${address}:${port}`,
    folder,
    get pid() {
      return child.pid as number
    },
    start,
    async kill() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGKILL')
      await ended
    },
  }
}

function listening(child: ChildProcess): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  child.once('error', reject)
  child.once('exit', (code) => reject(new Error(`docker-registry ended with ${code}`)))
  if (!child.stderr) throw new Error('docker-registry has no output')
  // Read to the end, because an unread pipe would block the registry.
  createInterface({ input: child.stderr }).on('line', (line) => {
    if (/listening on [^"]*:\d+/.test(line)) resolve()
  })
  return promise
}
