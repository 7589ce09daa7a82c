// The svc3 program: gives the command line its terminal. Nothing is decided here. No await at the top: its bundle is
// CommonJS, which Node starts 9 ms sooner than a module.
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
})
