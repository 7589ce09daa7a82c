// Where QEMU is talked to: sockets in a folder with a short path, which each run has of its own.
import path from 'node:path'

export const qmpSocket = (runtime: string): string => path.join(runtime, 'qmp')
export const agentSocket = (runtime: string): string => path.join(runtime, 'agent')
/** What QEMU calls our end of the guest agent's port. */
export const agentDevice = 'agent'
