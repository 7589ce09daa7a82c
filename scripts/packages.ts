// What the tests need from Debian, and how it comes: by apt, once, saying so; where that is not possible, by name.
import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'

interface Package {
  readonly name: string
  /** The program that proves it is there. */
  readonly program: string
  readonly why: string
}

const packages: readonly Package[] = [
  { name: 'util-linux', program: 'unshare', why: 'small file systems for the tests of a full disk' },
  { name: 'mount', program: 'mount', why: 'the same' },
  { name: 'bsdutils', program: 'script', why: 'a terminal for the tests of questions and answers' },
  { name: 'procps', program: 'ps', why: 'looking for secrets in the arguments of processes' },
  { name: 'curl', program: 'curl', why: 'the requests of the README' },
  { name: 'chromium', program: 'chromium', why: 'looking at pages as a person does' },
]

const folders = (process.env.PATH ?? '').split(':').concat('/usr/bin', '/usr/sbin', '/bin', '/sbin')
const isThere = ({ program }: Package): boolean => folders.some((folder) => fs.existsSync(path.join(folder, program)))

export function ensurePackages(): void {
  const missing = packages.filter((each) => !isThere(each))
  if (missing.length === 0) return
  const names = missing.map(({ name }) => name)
  const list = missing.map(({ name, why }) => `  ${name}: ${why}`).join('\n')
  if (process.getuid?.() !== 0 || !isThere({ name: 'apt', program: 'apt-get', why: '' })) {
    console.error(`svc3: the tests need these programs, and only root may install them (with Debian's apt):\n${list}`)
    console.error(`svc3: install them and run npm test again, for example: sudo apt-get install ${names.join(' ')}`)
    process.exit(1)
  }
  console.error(`svc3: installing with apt what the tests need:\n${list}`)
  apt(['update', '-qq'])
  apt(['install', '-y', '-qq', '--no-install-recommends', ...names])
  const still = packages.filter((each) => !isThere(each)).map(({ name }) => name)
  if (still.length > 0) fail(`apt did not bring ${still.join(', ')}`)
}

function apt(args: readonly string[]): void {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const { status } = spawnSync('apt-get', args, { stdio: ['ignore', 'ignore', 'inherit'], env })
  if (status !== 0) fail(`"apt-get ${args.join(' ')}" failed`)
}

function fail(problem: string): never {
  console.error(`svc3: ${problem}`)
  process.exit(1)
}
