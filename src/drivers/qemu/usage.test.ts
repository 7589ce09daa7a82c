// Numbers of a QEMU process from Linux and QMP.
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { diskUsage, networkUsage, processUsage } from './usage.ts'

it('the usage of a QEMU process is parsed after any process name', () => {
  const stat = '4242 (qemu) S 1 (x) R 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 4 0 77'
  assert.deepEqual(processUsage(stat, 'VmHWM:\t 9000 kB\nVmRSS:\t 4096 kB\n'), {
    cpuSeconds: 3,
    memoryBytes: 4096 * 1024,
  })
})

it('the usage of disks counts devices, not the layers below them', () => {
  const answer = [
    { qdev: '/machine/disk', stats: { rd_bytes: 10, wr_bytes: 4 } },
    { qdev: '/machine/iso', stats: { rd_bytes: 5, wr_bytes: 0 } },
    { device: 'base', stats: { rd_bytes: 99, wr_bytes: 99 } },
  ]
  assert.deepEqual(diskUsage(answer), { diskReadBytes: 15, diskWrittenBytes: 4 })
  assert.deepEqual(diskUsage({ error: 'x' }), { diskReadBytes: 0, diskWrittenBytes: 0 })
})

it('the usage of a network is that of the uplink, if there is one', () => {
  const text =
    'Inter-|   Receive    |  Transmit\n face |bytes packets\n    lo:  7 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n' +
    '  tap0: 120 2 0 0 0 0 0 0 340 5 0 0 0 0 0 0\n'
  assert.deepEqual(networkUsage(text), { networkInBytes: 120, networkOutBytes: 340 })
  assert.deepEqual(networkUsage('    lo:  7 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n'), {})
})
