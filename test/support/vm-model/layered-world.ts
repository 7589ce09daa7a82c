// A server process and an agent process with real disks and simulated guests, and a registry to push to.
import path from 'node:path'
import { startRegistry } from '../processes/registry.ts'
import { ClusterRig } from '../rigs/cluster-rig.ts'
import { topLayer } from '../stand-ins/layered-driver.ts'
import { eventually } from '../tools/eventually.ts'
import { endOf, notesIn, type World } from './world.ts'

const serverPoints = /^(captures\.(save|commit|finish|failed)|images|push|store)/
const agentPoints = /^(agent\.(?!peer|evict)|captures|images\.(put|restore)|oci\.copy)/

export async function layeredWorld(architecture: 'amd64' | 'arm64'): Promise<World> {
  const rig = await ClusterRig.make(architecture, { logLevel: 'debug' })
  rig.agentLog = path.join(rig.root, 'agent.log')
  const fatal = (name: string): string => path.join(rig.root, `${name}.failpoint`)
  await rig.server.kill('SIGTERM')
  await rig.start(`@${fatal('server')}`)
  /** The output of former servers. */
  let printed = ''
  let agent = await rig.startAgent(`@${fatal('agent')}`)
  const isApple = architecture === 'arm64'
  const registry = isApple ? await startRegistry({ folder: path.join(rig.root, 'registry') }) : undefined
  const vms = path.join(rig.root, 'node', 'vms')
  const world: World = {
    architecture,
    root: rig.root,
    content: rig.content,
    vms,
    ...(registry && { registry: registry.server }),
    call: (method, where, body, headers) => rig.server.call(method, where, body, headers).catch(() => undefined),
    mortals: {
      server: () => ({ process: rig.server.process, fatal: fatal('server'), points: serverPoints }),
      agent: () => ({ process: agent, fatal: fatal('agent'), points: agentPoints }),
    },
    revive: async (name) => {
      if (name === 'server') {
        printed = (printed + rig.server.output()).slice(-400_000)
        await eventually(() => rig.start(`@${fatal('server')}`), 60_000)
      } else agent = await rig.startAgent(`@${fatal('agent')}`)
    },
    disk: async (uid) => {
      const filename = await topLayer(path.join(vms, uid))
      return `json:${JSON.stringify({ driver: 'qcow2', file: { driver: 'file', filename } })}`
    },
    writable: 'running',
    upload: async (image, disk) => void (await rig.upload(image, disk)),
    leftovers: () => rig.leftOnNode(),
    evidence: async () =>
      [
        `the server:\n${printed}${rig.server.output()}`,
        `the agent:\n${await endOf(path.join(rig.root, 'agent.log'))}`,
        `its notes:\n${await notesIn(path.join(rig.root, 'node'))}`,
      ].join('\n'),
    hasOnly: (digests) => rig.hasOnly(digests),
    [Symbol.asyncDispose]: async () => {
      await rig[Symbol.asyncDispose]()
      await registry?.kill()
    },
  }
  return world
}
