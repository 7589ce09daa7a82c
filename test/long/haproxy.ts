// HAProxy on a separate host, with the configuration that docs/operate/several-servers.md has.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import net from 'node:net'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import type { TestHost } from '../support/processes/hosts.ts'
import { eventually } from '../support/tools/eventually.ts'

interface Haproxy extends AsyncDisposable {
  /** Whether it sends anything to the server of that name. */
  isUsed(server: string): Promise<boolean>
}

/** Where it will listen: at the page's own port, where the host is its own. */
export const haproxyPort = ({ isApart }: TestHost): number => (isApart ? 443 : 8443)

export async function startHaproxy(host: TestHost, folder: string, page: string): Promise<Haproxy> {
  const [config, more, socket] = ['haproxy.cfg', 'stats.cfg', 'stats.sock'].map((name) => path.join(folder, name)) as [
    string,
    string,
    string,
  ]
  const bind = host.isApart ? 'bind :443' : `bind ${host.address}:${haproxyPort(host)}`
  assert.ok(page.includes('bind :443'), 'the page says where it listens')
  await fs.writeFile(config, page.replace('bind :443', bind))
  await fs.writeFile(more, `global\n  stats socket ${socket}\n`)
  const child = host.spawn('haproxy', ['-db', '-f', config, '-f', more], { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    said = (said + chunk).slice(-10_000)
  })
  const statuses = async (): Promise<Map<string, string>> => {
    const connection = net.connect(socket)
    connection.end('show stat\n')
    const rows = (await text(connection)).split('\n').map((line) => line.split(','))
    const column = rows[0]?.indexOf('status') ?? -1
    return new Map(rows.map((row) => [`${row[0]}/${row[1]}`, row[column] ?? '']))
  }
  const proxy: Haproxy = {
    isUsed: async (server) => (await statuses()).get(`svc3/${server}`)?.startsWith('UP') ?? false,
    [Symbol.asyncDispose]: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGKILL')
      await once(child, 'exit')
    },
  }
  await eventually(async () => {
    assert.equal(child.exitCode, null, said)
    await statuses()
  }, 30_000)
  return proxy
}
