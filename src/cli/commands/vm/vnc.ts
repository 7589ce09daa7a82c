// svc3 vm vnc

import type { AddressInfo, Server, Socket } from 'node:net'
import net from 'node:net'
import stream from 'node:stream/promises'
import { ApiError } from '../../../api/errors.ts'
import { getVm } from '../../../api/vms/vms.ts'
import { type Context, defineCommand, namespaced } from '../../command.ts'
import { Failure } from '../../line/usage.ts'
import { vmArgument } from './parts/vm-argument.ts'
import { type Dial, dialerFor } from './reach/reach.ts'

export const command = defineCommand({
  description:
    'Opens a port on this machine that forwards to the screen of a VM, through the service, and prints its address.\n' +
    'Anyone logged in to this machine can use the port until you press Ctrl-C.',
  arguments: vmArgument,
  options: {
    port: {
      type: 'integer',
      value: 'PORT',
      min: 1,
      max: 65_535,
      description: 'Local port (default: any free port)',
    },
    ...namespaced,
  },
  examples: [{ line: 'svc3 vm vnc demo', does: 'Print vnc://127.0.0.1:PORT for a viewer, and forward until Ctrl-C' }],
  async run(context, { args: { vm: name }, options }) {
    const { host, signal } = context
    const { client, namespace, sameTargetFlags } = await context.connect()
    const vm = await client.call(getVm, { params: { namespace, vm: name }, signal })
    if (vm.vnc === undefined) {
      const [what, hint] =
        vm.status === 'Pending'
          ? ['is not running yet', `Run svc3 vm show ${name}${sameTargetFlags} to see its state`]
          : ['has no screen', 'Deploy it without --disable-vnc']
      throw new ApiError('Conflict', `VM ${name} ${what}`, { hint })
    }
    const server = await listen(options.port ?? 0, (socket) =>
      forward(context, socket, dialerFor(context, { namespace, vm: name, port: 'vnc' })),
    )
    host.stdout.write(`vnc://127.0.0.1:${(server.address() as AddressInfo).port}\n`)
    context.note('Open it with a VNC viewer; press Ctrl-C to stop')
    const { promise, resolve } = Promise.withResolvers<void>()
    signal.addEventListener('abort', () => resolve(), { once: true })
    if (!signal.aborted) await promise
    server.close()
    return 130
  },
})

function listen(port: number, onConnection: (socket: Socket) => void): Promise<Server> {
  const { promise, resolve, reject } = Promise.withResolvers<Server>()
  const server = net.createServer(onConnection)
  server.once('error', ({ code }: NodeJS.ErrnoException) =>
    reject(new Failure(`Cannot listen on 127.0.0.1:${port} (${code})`, 'Choose another --port, or omit it')),
  )
  server.listen(port, '127.0.0.1', () => resolve(server))
  return promise
}

/** A failing viewer does not end the others. */
async function forward({ signal, note }: Context, socket: Socket, dial: Dial): Promise<void> {
  const closed = new AbortController()
  socket.once('close', () => closed.abort())
  try {
    const tunnel = await dial(AbortSignal.any([signal, closed.signal]))
    await stream.pipeline(socket, tunnel, socket)
  } catch (error) {
    socket.destroy()
    if (!signal.aborted && !closed.signal.aborted) note((error as Error).message)
  }
}
