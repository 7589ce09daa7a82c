// A program that spends too much of what the path of a request names, to prove that the watcher notices:
// node wasteful-program.ts FOLDER. It prints its address.
import fs from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'

const folder = process.argv[2] ?? ''
const kept: unknown[] = []
/** Until then, requests are not answered. */
let silentUntilMs = 0

const spend: Readonly<Record<string, () => void>> = {
  '/': () => undefined,
  '/time': () => {
    const since = process.cpuUsage()
    while (process.cpuUsage(since).user < 600_000);
  },
  '/memory': () => kept.push(Buffer.alloc(300 * 2 ** 20, 1)),
  '/descriptors': () => {
    for (let count = 0; count < 700; count++) kept.push(fs.openSync(process.execPath, 'r'))
  },
  '/disk': () => fs.writeFileSync(path.join(folder, 'file'), Buffer.alloc(70 * 2 ** 20, 1)),
  '/log': () => void process.stdout.write('a'.repeat(2 * 2 ** 20)),
  '/silence': () => {
    silentUntilMs = performance.now() + 1_000
  },
}

const server = http.createServer((request, response) => {
  if (performance.now() < silentUntilMs) return request.socket.destroy()
  spend[request.url ?? '']?.()
  response.end()
})
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`)
})
