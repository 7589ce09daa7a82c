// Whether this machine's kubectl is too old. Debian 12 has one of 2020, without `explain` by OpenAPI v3 and other current
// commands; those tests are skipped there, and a skipped test is a failure in CI.
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
