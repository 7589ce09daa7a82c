// The command line as one file, for machines that only talk to a service: no folder of its own, no service inside.

import { Failure } from '../cli/line/usage.ts'
import { runProcess } from '../cli/process.ts'
import type { Programs } from '../cli/programs.ts'
import { version } from '../control-plane/version.ts'

const absent = async (): Promise<never> => {
  throw new Failure(
    'this svc3 is the command line alone: it runs neither a service nor a node',
    'install the whole of it: npm install -g, or docs/hosts-linux.md and docs/hosts-macos.md',
  )
}

const programs: Programs = {
  dev: absent,
  server: absent,
  rotateKey: absent,
  rotateKeys: absent,
  backup: absent,
  restore: absent,
  migrateStore: absent,
  forgetServer: absent,
  users: absent,
  agent: absent,
  service: absent,
  serviceStatus: absent,
  doctor: absent,
}

// A file of the old kind of module, so that an old Node can read far enough to be told: it has no await here.
void runProcess({
  checkout: process.getBuiltinModule('node:path').dirname(process.argv[1] ?? '/'),
  version,
  programs,
  isInstalled: true,
})
