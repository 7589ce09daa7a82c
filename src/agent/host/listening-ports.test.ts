// Ports in use, from tables of Linux and macOS and from this host.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { describe, it } from 'node:test'
import { busyPorts, listeners, parseListeners, parseNetstat } from './listening-ports.ts'

const tcp = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0000000000000000 100 0 0 10 0
   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 2 1 0000000000000000 100 0 0 10 0
   2: 00000000:2260 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 3 1 0000000000000000 100 0 0 10 0
   3: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0        0 4 1 0000000000000000 100 0 0 10 0
`
const tcp6 = `   0: 00000000000000000000000000000000:22B8 00000000000000000000000000000000:0000 0A 00000000:00000000 00:0 0 0 0
   1: 0000000000000000FFFF00000700000A:22B9 00000000000000000000000000000000:0000 0A 00000000:00000000 00:0 0 0 0
`

const netstat = `Active Internet connections (including servers)
Proto Recv-Q Send-Q  Local Address          Foreign Address        (state)
tcp4       0      0  *.5900                 *.*                    LISTEN
tcp46      0      0  *.8080                 *.*                    LISTEN
tcp4       0      0  10.0.0.7.54433         1.2.3.4.443            ESTABLISHED
tcp4       0      0  127.0.0.1.631          *.*                    LISTEN
tcp6       0      0  fe80::1%lo0.8021       *.*                    LISTEN
udp4       0      0  *.5353                 *.*
`

describe('listening ports', () => {
  const all = [...parseListeners(tcp), ...parseListeners(tcp6)]

  it('listening ports are read with their addresses, without connections', () =>
    assert.deepEqual(all, [
      { address: '127.0.0.1', port: 8080 },
      { address: '0.0.0.0', port: 22 },
      { address: '0.0.0.0', port: 8800 },
      { address: '::', port: 8888 },
      { address: '10.0.0.7', port: 8889 },
    ]))

  it('listening ports are read on macOS: its own screen sharing, IPv6 with and without IPv4, and no connections', () =>
    assert.deepEqual(parseNetstat(netstat), [
      { address: '0.0.0.0', port: 5900 },
      { address: '0.0.0.0', port: 8080 },
      { address: '127.0.0.1', port: 631 },
      { address: 'fe80::1%lo0', port: 8021 },
    ]))

  it('listening ports are busy on their address or on all addresses, except those of this node and those below 1024', () => {
    assert.deepEqual(busyPorts(all, '10.0.0.7', new Set()), [8800, 8888, 8889])
    assert.deepEqual(busyPorts(all, '127.0.0.1', new Set([8800])), [8080, 8888])
    assert.deepEqual(busyPorts(all, '0.0.0.0', new Set()), [8080, 8800, 8888, 8889])
  })

  it('ports on the waiting address of slots are busy, too, because a claim moves them', () => {
    const slot = { address: '127.83.0.7', port: 8_822 }
    assert.deepEqual(busyPorts([slot], '10.0.0.7', new Set()), [8_822])
    assert.deepEqual(busyPorts([slot], '10.0.0.7', new Set([8_822])), [], 'one of our own')
    assert.deepEqual(busyPorts([slot], '10.0.0.8', new Set()), [])
  })

  it('listening ports are found on this host', async () => {
    const server = net.createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as net.AddressInfo
    const found = busyPorts(await listeners(), '127.0.0.1', new Set())
    server.close()
    assert.ok(found.includes(port))
  })
})
