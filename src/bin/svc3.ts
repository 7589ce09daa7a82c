// The entry of the svc3 program. It has no top-level await, because its bundle is CommonJS, which Node starts faster than
// a module.
import './compile-cache.ts'

import fs from 'node:fs'
import path from 'node:path'
import { runProcess } from '../cli/process.ts'
import { version } from '../control-plane/version.ts'

const here = import.meta.dirname
const checkout = path.join(here, here.endsWith(path.join('src', 'bin')) ? '../..' : '..')

void runProcess({
  checkout,
  isInstalled: !fs.existsSync(path.join(checkout, 'scripts', 'prepare.mjs')),
  version,
})
