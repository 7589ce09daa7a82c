// `npm run test:apple`: the contract of the driver for Apple silicon. With SVC3_APPLE=1, on a Mac, with tart itself and from
// the VM that SVC3_APPLE_VM names; otherwise on the stand-in for tart, as in `npm run test:full`.
import { runTests } from './test.ts'

const isReal = process.env.SVC3_APPLE === '1'
const problem = !isReal
  ? undefined
  : process.platform !== 'darwin' || process.arch !== 'arm64'
    ? 'SVC3_APPLE=1 needs a Mac with Apple silicon'
    : process.env.SVC3_APPLE_VM
      ? undefined
      : 'SVC3_APPLE_VM has to name a VM of tart with macOS; "tart clone ghcr.io/cirruslabs/macos-sequoia-vanilla:latest test" makes one'

if (problem !== undefined) {
  console.error(`${problem}; without SVC3_APPLE=1 the stand-in for tart is used`)
  process.exit(1)
}
console.log(isReal ? 'on tart itself' : 'on the stand-in for tart: this says nothing about a real Mac')
process.exit(await runTests(['test/contract/apple-driver.full.test.ts']))
