// `npm start` on a new machine: what the first VM needs comes while dependencies are installed, which leave the processor
// mostly idle. Programs come with apt; the image of the first steps is built where `svc3 dev` looks for it. Needs none of
// our dependencies. What fails here is told and tried again by `svc3 dev` or by the first deploy.
import fs from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { buildGuest, downloadPackages } from '../packages/tiny-guests/build.ts'
import { usualDataDir } from '../src/control-plane/checkout.ts'
import { firstImage } from '../src/control-plane/next-steps.ts'
import { ensureHostPrograms, hasHostPrograms } from '../src/operator/host-programs.ts'
import { canInstall } from '../src/platform/debian.ts'

const say = (line: string): void => void process.stderr.write(`svc3: ${line}\n`)

const { values } = parseArgs({
  options: { data: { type: 'string' }, driver: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
  strict: false,
  allowPositionals: true,
})
const workingDir = process.env.INIT_CWD ?? process.cwd()
const dataDir = path.resolve(workingDir, String(values.data ?? (process.env.SVC3_DATA || usualDataDir())))
const isFirst = !fs.existsSync(dataDir) && values.driver !== 'simulated' && !values.help
const canBuild = process.platform === 'linux' && (canInstall() || hasHostPrograms())
if (isFirst && canBuild) {
  // As secret as the server wants it, which finds it there.
  fs.mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const folder = path.join(dataDir, 'images')
  const build = { name: firstImage, folder, signal: new AbortController().signal } as const
  const downloaded = downloadPackages(build).catch(() => undefined)
  if (await ensureHostPrograms(say)) {
    await downloaded
    say(`Building ${firstImage}, the image of the first steps`)
    await buildGuest(build).catch((error: Error) => say(`${firstImage} is built by the first deploy: ${error.message}`))
  }
}
