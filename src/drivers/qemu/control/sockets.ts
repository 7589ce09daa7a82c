// The paths of a QEMU's sockets, in a folder with a short path that each run creates.
import path from 'node:path'

export const qmpSocket = (runtime: string): string => path.join(runtime, 'qmp')
export const agentSocket = (runtime: string): string => path.join(runtime, 'agent')
/** QEMU's name of the host's end of the guest agent's port. */
export const agentDevice = 'agent'
