// The driver for Apple silicon keeps the contract on the stand-in for tart (test/support/stand-ins/tart): real processes on
// blank disks. With SVC3_APPLE=1, on a Mac: the same on tart itself (npm run test:apple).
import { onRealMac, onStandIn } from './driver-apple.ts'

await (process.env.SVC3_APPLE === '1' ? onRealMac() : onStandIn())
