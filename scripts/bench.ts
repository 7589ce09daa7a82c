// `npm run bench`: ours beside a reference, from one run on one machine. Ends with 1 when a target is missed.
import { cliBench } from '../bench/cli.ts'
import { consoleBench } from '../bench/console.ts'
import { createsBench } from '../bench/creates.ts'
import { etcdBench } from '../bench/etcd.ts'
import { fleetBench } from '../bench/fleet.ts'
import { guestBench } from '../bench/guest.ts'
import { httpBench } from '../bench/http.ts'
import { imagePlacesBench } from '../bench/image-places.ts'
import { imagesBench } from '../bench/images.ts'
import { registryBench } from '../bench/registry.ts'
import { resumeBench } from '../bench/resume.ts'
import { meetsTarget, printRows } from '../bench/row.ts'
import { serversBench } from '../bench/servers.ts'
import { storeBench } from '../bench/store.ts'
import { buildProgram } from './build.ts'

await buildProgram()
const rows = [
  ...(await httpBench()),
  ...(await storeBench()),
  ...(await etcdBench()),
  ...(await createsBench()),
  ...(await serversBench()),
  ...(await cliBench()),
  ...(await fleetBench()),
  ...(await guestBench()),
  ...(await imagesBench()),
  ...(await resumeBench()),
  ...(await registryBench()),
  ...(await imagePlacesBench()),
  ...(await consoleBench()),
]
printRows(rows)
process.exit(rows.every(meetsTarget) ? 0 : 1)
