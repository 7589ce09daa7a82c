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
    `Another program already listens on ${listen.host}:${listen.port}`,
    'Stop it, or choose another port with --listen 127.0.0.1:PORT (0 for any free port)',
  ],
  EADDRNOTAVAIL: ({ listen }) => [
    `This machine has no address ${listen.host}`,
    'Choose another with --listen HOST:PORT',
  ],
  EACCES: ({ listen, dataDir }, { syscall }) =>
    syscall === 'listen'
      ? [`Not permitted to listen on ${listen.host}:${listen.port}`, 'Choose a port above 1023 with --listen HOST:PORT']
      : [`Not permitted to write to ${dataDir}`, 'Choose your own folder with --data DIR, or run this as its owner'],
  ENOSPC: ({ dataDir }) => [
    `No disk space left for ${dataDir}`,
    'Free disk space, or choose another folder with --data DIR',
  ],
  EROFS: ({ dataDir }) => [`${dataDir} is on a read-only file system`, 'Choose another folder with --data DIR'],
  ENOTDIR: ({ dataDir }) => [`${dataDir} is not a folder`, 'Choose another with --data DIR'],
  EEXIST: ({ dataDir }) => [`${dataDir} is not a folder`, 'Choose another with --data DIR'],
}

export async function startFailure(error: unknown, options: Started): Promise<readonly string[]> {
  if (error instanceof StoreError && error.fault === 'Locked') {
    const running = await readConnection(options.dataDir)
    const another = 'to run another, add --data DIR --listen 127.0.0.1:0'
    return running
      ? [
          `Already running at ${running.apiUrl} (process ${running.pid}, data in ${options.dataDir})`,
          `To stop it, press Ctrl-C in its terminal or run kill ${running.pid}; ${another}`,
        ]
      : [`Another server uses ${options.dataDir}`, `Wait until it has started or stopped; ${another}`]
  }
  if (error instanceof StoreError && error.fault === 'Damaged')
    return [error.message, 'Nothing was started. See docs/operate/backup.md']
  if (error instanceof SettingsError) return [error.message, 'Nothing was started. See docs/reference/config.md']
  if (
    error instanceof StoreError ||
    error instanceof KeyringError ||
    error instanceof SealError ||
    error instanceof ForeignImagesError
  ) {
    return [error.message, 'Nothing was started. See docs/operate/install.md']
  }
  // Only the image registry is used before the service is up.
  if (error instanceof RegistryError)
    return [
      `The image registry cannot be used: ${error.problem}`,
      'Check --images, its user name and password, and images.caFile in config.json. See docs/operate/images-in-a-registry.md',
    ]
  const code = (error as NodeJS.ErrnoException).code
  const known = code === undefined ? undefined : systemFaults[code]
  if (known) return known(options, error as NodeJS.ErrnoException)
  if (process.env.SVC3_DEBUG && error instanceof Error && error.stack) process.stderr.write(`${error.stack}\n`)
  return [
    `The server did not start: ${error instanceof Error ? error.message : 'unknown error'}`,
    'Run it with SVC3_DEBUG=1 for details',
  ]
}
