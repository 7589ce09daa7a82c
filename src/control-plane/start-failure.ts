// Explains why the service did not start, and what to do next.
import { KeyringError } from '../auth/keyring.ts'
import { SealError } from '../auth/seal.ts'
import { RegistryError } from '../oci/artifact/errors.ts'
import { ForeignImagesError } from '../oci/content/owner.ts'
import { SettingsError } from '../server/config/settings.ts'
import { StoreError } from '../store/store.ts'
import { readConnection } from './connection.ts'

interface Started {
  readonly listen: { readonly host: string; readonly port: number }
  readonly dataDir: string
}

const systemFaults: Readonly<
  Record<string, (options: Started, fault: NodeJS.ErrnoException) => readonly [string, string]>
> = {
  EADDRINUSE: ({ listen }) => [
    `another program already listens on ${listen.host}:${listen.port}`,
    'stop it, or choose another port with --listen 127.0.0.1:PORT (0 takes a free one)',
  ],
  EADDRNOTAVAIL: ({ listen }) => [
    `this machine has no address ${listen.host}`,
    'choose one that it has with --listen HOST:PORT',
  ],
  EACCES: ({ listen, dataDir }, { syscall }) =>
    syscall === 'listen'
      ? [`not permitted to listen on ${listen.host}:${listen.port}`, 'choose a port above 1023 with --listen HOST:PORT']
      : [`not permitted to write to ${dataDir}`, 'choose a folder of yours with --data DIR, or let its owner run this'],
  ENOSPC: ({ dataDir }) => [`no space is left for ${dataDir}`, 'free some, or choose another folder with --data DIR'],
  EROFS: ({ dataDir }) => [`${dataDir} is on a read-only file system`, 'choose another folder with --data DIR'],
  ENOTDIR: ({ dataDir }) => [`${dataDir} is not a folder`, 'choose another with --data DIR'],
  EEXIST: ({ dataDir }) => [`${dataDir} is not a folder`, 'choose another with --data DIR'],
}

export async function startFailure(error: unknown, options: Started): Promise<readonly string[]> {
  if (error instanceof StoreError && error.fault === 'Locked') {
    const running = await readConnection(options.dataDir)
    const who = running ? ` (process ${running.pid}, ${running.apiUrl})` : ''
    return [
      `svc3 is already running on ${options.dataDir}${who}`,
      'use that one, stop it first, or start on other data with --data DIR',
    ]
  }
  if (
    error instanceof StoreError ||
    error instanceof KeyringError ||
    error instanceof SealError ||
    error instanceof SettingsError ||
    error instanceof ForeignImagesError
  ) {
    return [error.message, 'nothing was started; docs/operating.md says more about the data folder']
  }
  // Other registries are not asked before the service is up.
  if (error instanceof RegistryError)
    return [
      `the registry with the images cannot be used: ${error.problem}`,
      'check --images, its user name and password, and images.caFile in config.json; docs/operating.md says more',
    ]
  const code = (error as NodeJS.ErrnoException).code
  const known = code === undefined ? undefined : systemFaults[code]
  if (known) return known(options, error as NodeJS.ErrnoException)
  if (process.env.SVC3_DEBUG && error instanceof Error && error.stack) process.stderr.write(`${error.stack}\n`)
  return [
    `the service did not start: ${error instanceof Error ? error.message : 'for an unknown reason'}`,
    'run it with SVC3_DEBUG=1 for details',
  ]
}
