// The svc3 program: gives the command line its terminal and the programs that it may start. Nothing is decided here. No
// await at the top: its bundle is CommonJS, which Node starts 9 ms sooner than a module.
import './first-help.ts'

import { runProcess } from '../cli/process.ts'
import { version } from '../control-plane/version.ts'

const { join } = process.getBuiltinModule('node:path')
const here = import.meta.dirname
const checkout = join(here, here.endsWith(join('src', 'bin')) ? '../..' : '..')

void runProcess({
  checkout,
  isInstalled: !process.getBuiltinModule('node:fs').existsSync(join(checkout, 'scripts', 'prepare.mjs')),
  version,
  programs: {
    dev: async (options) => (await import('./dev.ts')).runDev(options),
    server: async (options) => (await import('./server.ts')).runServer(options),
    rotateKey: async (options) => (await import('../operator/rotate-master-key.ts')).runRotateKey(options),
    rotateKeys: async (options) => (await import('../operator/rotate-signing-keys.ts')).runRotateKeys(options),
    backup: async (options) => (await import('../operator/data-commands.ts')).runBackup(options),
    restore: async (options) => (await import('../operator/data-commands.ts')).runRestore(options),
    migrateStore: async (options) => (await import('../operator/data-commands.ts')).runMigrateStore(options),
    forgetServer: async (options) => (await import('../operator/data-commands.ts')).runForgetServer(options),
    agent: async (options) => (await import('./agent.ts')).runAgent(options),
    service: async (request) => (await import('./service.ts')).runService(request),
    serviceStatus: async (place) => (await import('./service.ts')).serviceStatus(place),
    doctor: async (options) => (await import('./doctor.ts')).runDoctor(options),
    users: async (options) => (await import('../operator/users.ts')).runUsers(options),
  },
})
