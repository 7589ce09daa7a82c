// The svc3 program: gives the command line its terminal and the programs that it may start. Nothing is decided here.
import { version } from './version.ts'

const { join } = process.getBuiltinModule('node:path')
const here = import.meta.dirname
const isBundled = !here.endsWith(join('src', 'bin'))
// Compiled code is kept beside the bundle: no other user can plant it there, and a new build starts without it.
if (isBundled) process.getBuiltinModule('node:module').enableCompileCache(join(here, 'cache'))

const { runProcess } = await import('../cli/process.ts')
await runProcess({
  checkout: join(here, isBundled ? '..' : '../..'),
  version,
  programs: {
    dev: async (options) => (await import('./dev.ts')).runDev(options),
    server: async (options) => (await import('./server.ts')).runServer(options),
    rotateKey: async (options) => (await import('./rotate-key.ts')).runRotateKey(options),
    agent: async (options) => (await import('./agent.ts')).runAgent(options),
    users: async (options) => (await import('./users.ts')).runUsers(options),
  },
})
