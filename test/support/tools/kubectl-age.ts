// How old the kubectl of this machine is. Debian 12 has one of 2020, which has neither `explain` by OpenAPI v3 nor half of what
// people type today: its tests are skipped there, with the reason, and a skipped test is a failure in CI.
import { execFileSync } from 'node:child_process'

const needed = 27

/** A reason to skip, or false. */
export function tooOldKubectl(): string | false {
  const { clientVersion } = JSON.parse(
    execFileSync('kubectl', ['version', '--client', '-o', 'json'], { encoding: 'utf8' }),
  )
  return (
    Number.parseInt(clientVersion.minor, 10) < needed &&
    `needs kubectl 1.${needed}, and this is 1.${clientVersion.minor}`
  )
}
