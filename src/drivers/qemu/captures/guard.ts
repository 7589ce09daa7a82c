// Lets a VM go on whose agent died while it stood still to be captured: a process of its own that does nothing as long as
// the agent lives. Otherwise the guest would stand still until an agent is back.
import { spawn } from 'node:child_process'
import { childEnvironment } from '../../../platform/exec.ts'
import { qmpSocket } from '../control/sockets.ts'

/**
 * Reads where QEMU listens, and then a word; the end of its input without that word is the death of the agent. Then QEMU is
 * told to stop saving and to go on, which an agent that is back would tell it, too. Where one is quicker, it has QEMU's ear
 * and does it itself. Its text is constant, and what it works on stands in no argument, by which a VM's processes are found.
 */
const script = `
const net = require('node:net')
let input = ''
process.stdin.setEncoding('utf8').on('data', (text) => { input += text; if (input.includes('\\ndone')) process.exit(0) })
process.stdin.on('end', () => {
  setTimeout(() => process.exit(1), 20000)
  const socket = net.connect(input.split('\\n')[0])
  socket.on('error', () => process.exit(1))
  const say = (execute) => socket.write(JSON.stringify({ execute, id: execute }) + '\\n')
  const next = {
    qmp_capabilities: () => say('migrate_cancel'),
    migrate_cancel: () => say('query-migrate'),
    'query-migrate': ({ status } = {}) =>
      status === undefined || ['none', 'completed', 'failed', 'cancelled'].includes(status)
        ? say('cont')
        : setTimeout(() => say('query-migrate'), 5),
    cont: () => process.exit(0),
  }
  let text = ''
  socket.setEncoding('utf8').on('data', (more) => {
    const lines = (text + more).split('\\n')
    text = lines.pop()
    for (const line of lines) {
      const message = JSON.parse(line)
      if (message.QMP) say('qmp_capabilities')
      else if (message.id) next[message.id]?.(message.return)
    }
  })
})
`

/** From before the VM is paused until disposed of, which is when it goes on. */
export function startGuard(runtime: string): Disposable {
  const child = spawn(process.execPath, ['-e', script], {
    env: childEnvironment,
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  child.unref()
  // Without it a capture is as safe; only an agent that dies in the middle leaves the guest waiting for the next one.
  child.on('error', () => undefined)
  child.stdin.on('error', () => undefined)
  child.stdin.write(`${qmpSocket(runtime)}\n`)
  return { [Symbol.dispose]: () => void child.stdin.end('done\n') }
}
