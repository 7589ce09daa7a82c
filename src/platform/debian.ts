// Installs missing Debian packages with apt.
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'

export interface DebianProgram {
  /** The name of the package. */
  readonly name: string
  /** A program or an absolute path that exists if the package is installed. */
  readonly program: string
  readonly why: string
}

const folders = (): string[] => (process.env.PATH ?? '').split(':').concat('/usr/bin', '/usr/sbin', '/bin', '/sbin')
const isThere = (program: string): boolean =>
  path.isAbsolute(program)
    ? fs.existsSync(program)
    : folders().some((folder) => fs.existsSync(path.join(folder, program)))

export const missingOf = (programs: readonly DebianProgram[]): DebianProgram[] =>
  programs.filter(({ program }) => !isThere(program))

export const canInstall = (): boolean => process.getuid?.() === 0 && isThere('apt-get')

export const installLine = (packages: readonly DebianProgram[]): string =>
  `apt-get install ${[...new Set(packages.map(({ name }) => name))].join(' ')}`

export async function install(packages: readonly DebianProgram[]): Promise<void> {
  const names = [...new Set(packages.map(({ name }) => name))]
  await apt(['update', '-qq'])
  await apt(['install', '-y', '-qq', '--no-install-recommends', ...names])
  const still = missingOf(packages).map(({ name }) => name)
  if (still.length > 0) throw new Error(`apt did not install ${still.join(', ')}`)
}

function apt(args: readonly string[]): Promise<void> {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  return new Promise((resolve, reject) => {
    const child = spawn('apt-get', args, { stdio: ['ignore', 'ignore', 'inherit'], env })
    child.on('error', reject)
    child.on('exit', (code) =>
      code === 0 ? resolve() : reject(new Error(`"apt-get ${args.join(' ')}" failed (exit code ${code})`)),
    )
  })
}
