// The svc3 program: gives the command line its terminal and the programs that it may start. Nothing is decided here.
import { version } from './version.ts'

const { join } = process.getBuiltinModule('node:path')
const here = import.meta.dirname
const isBundled = !here.endsWith(join('src', 'bin'))
if (isBundled && isFirstHelp(process.argv.slice(2)) && printFirstHelp()) process.exit(0)
// Compiled code is kept beside the bundle: no other user can plant it there, and a new build starts without it.
if (isBundled) process.getBuiltinModule('node:module').enableCompileCache(join(here, 'cache'))

const { runProcess } = await import('../cli/process.ts')
const checkout = join(here, isBundled ? '..' : '../..')
await runProcess({
  checkout,
  isInstalled: !process.getBuiltinModule('node:fs').existsSync(join(checkout, 'scripts', 'prepare.mjs')),
  version,
  programs: {
    dev: async (options) => (await import('./dev.ts')).runDev(options),
    server: async (options) => (await import('./server.ts')).runServer(options),
    rotateKey: async (options) => (await import('./rotate-key.ts')).runRotateKey(options),
    rotateKeys: async (options) => (await import('./rotate-keys.ts')).runRotateKeys(options),
    backup: async (options) => (await import('./data-commands.ts')).runBackup(options),
    restore: async (options) => (await import('./data-commands.ts')).runRestore(options),
    migrateStore: async (options) => (await import('./data-commands.ts')).runMigrateStore(options),
    agent: async (options) => (await import('./agent.ts')).runAgent(options),
    service: async (request) => (await import('./service.ts')).runService(request),
    serviceStatus: async (place) => (await import('./service.ts')).serviceStatus(place),
    doctor: async (options) => (await import('./doctor.ts')).runDoctor(options),
    users: async (options) => (await import('./users.ts')).runUsers(options),
  },
})

function isFirstHelp(words: readonly string[]): boolean {
  return words.length === 0 || (words.length === 1 && (words[0] === '--help' || words[0] === '-h'))
}

/** The build has written it down: nothing of the program is loaded for it. What keeps it from being shown, main tells. */
function printFirstHelp(): boolean {
  const fs = process.getBuiltinModule('node:fs')
  const name = process.env.SVC3_CALLED_AS === 'orka3' ? 'orka3' : 'svc3'
  try {
    const text = fs.readFileSync(join(here, `help-${name}.txt`))
    return fs.writeSync(1, text) === text.length
  } catch {
    return false
  }
}
