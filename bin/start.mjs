// The first that an installed svc3 runs on the machine's own Node: plain enough for old ones to be told that they are.
import { fileURLToPath } from 'node:url'

const wanted = 24
if (Number(process.versions.node.split('.')[0]) < wanted) {
  const name = (process.env.SVC3_CALLED_AS || 'svc3').split('/').pop()
  console.error(`${name}: svc3 needs Node ${wanted} or newer; this is Node ${process.versions.node} (${process.execPath}).`)
  console.error(`${name}: Install a newer one from nodejs.org or with brew install node, or put it first in PATH.`)
  process.exit(1)
}
// As if it had been started by itself: what starts itself again, as ssh's proxy does, goes by this.
process.argv[1] = fileURLToPath(new URL('../dist/svc3.cjs', import.meta.url))
await import('../dist/svc3.cjs')
