// The command line as one file, for machines that only talk to a service: no folder of its own, no service inside.
import path from 'node:path'
import { runProcess } from '../cli/process.ts'
import { version } from '../control-plane/version.ts'

// A file of the old kind of module, so that an old Node can read far enough to be told: it has no await here.
void runProcess({
  checkout: path.dirname(process.argv[1] ?? '/'),
  version,
  isInstalled: true,
})
