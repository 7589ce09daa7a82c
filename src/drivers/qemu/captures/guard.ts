// A helper process that continues a paused VM if the agent dies during a capture. Otherwise the guest would stand still
// until the next agent starts.
import { spawn } from 'node:child_process'
import { childEnvironment } from '../../../platform/exec.ts'
import { qmpSocket } from '../control/sockets.ts'

/**
 * Reads QEMU's socket path, then a word. If its input ends without that word, the agent has died: it makes QEMU stop
 * saving and continue, as the next agent would. If an agent is faster, that one has QEMU's only connection and does it.
 * The script is constant and has no arguments, because a VM's processes are found by theirs.
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

/** Starts the helper. Called before the VM is paused; the caller disposes of the result when the VM has continued. */
export function startGuard(runtime: string): Disposable {
  const child = spawn(process.execPath, ['-e', script], {
    env: childEnvironment,
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  child.unref()
  // Captures are safe without it; only a guest whose agent dies during one would wait for the next agent.
  child.on('error', () => undefined)
  child.stdin.on('error', () => undefined)
  child.stdin.write(`${qmpSocket(runtime)}\n`)
  return { [Symbol.dispose]: () => void child.stdin.end('done\n') }
}
