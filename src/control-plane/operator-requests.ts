// Carries out the requests of operator commands in the running server, because only the server has the data open.
import os from 'node:os'
import path from 'node:path'
import { KeyringError, type KeySource } from '../auth/keyring.ts'
import { editUsers, UserDirectory } from '../auth/provider/users.ts'
import type { Secrets } from '../auth/secrets.ts'
import type { SigningKeys } from '../auth/signing-keys.ts'
import type { Tokens } from '../auth/tokens.ts'
import type { ContentStore } from '../images/content/content.ts'
import { caughtUp, currentRev } from '../store/records/caught-up.ts'
import type { Collections } from '../store/records/collections.ts'
import type { Store } from '../store/store.ts'
import { administratorToken } from './administrator.ts'
import { writeBackup } from './backup-file.ts'
import { OperatorError } from './data-folder.ts'
import type { OperatorRequest, RequestFile } from './operator-request.ts'
import { notOurs, type Rotation, rotateKeyFile } from './reseal.ts'

interface Operated {
  readonly dataDir: string
  readonly content: ContentStore
  readonly keySource: KeySource
  readonly store: Store
  readonly collections: Collections
  readonly secrets: Secrets
  readonly signingKeys: Pick<SigningKeys, 'rotate'>
  readonly tokens: Tokens
  /** Undefined if the organization has its own identity provider. */
  readonly localUsers?: UserDirectory | undefined
  /** Logs an error for each record that cannot be decrypted, and returns the rotation. */
  announced(rotation: Rotation): Rotation
}

const timeoutMs = 10_000

export async function handleRequest(
  operated: Operated,
  request: OperatorRequest,
): Promise<NonNullable<RequestFile['answer']>> {
  const { dataDir, content, keySource, store, collections, secrets, signingKeys, announced } = operated
  switch (request.name) {
    case 'master-key':
      if (keySource.kind !== 'file') throw new KeyringError(notOurs(keySource.name))
      return announced(await rotateKeyFile(collections, secrets, keySource.file))
    case 'signing-keys':
      // Waits for the view, because another server may just have created a key.
      await caughtUp(store, [collections.signingKeys.view], await currentRev(store), AbortSignal.timeout(timeoutMs))
      return signingKeys.rotate(request)
    case 'users':
      if (request.edit.verb === 'token')
        return administratorToken(collections.events, operated.tokens, operated.localUsers, request.edit.email)
      // Local users can be edited even while config.json names another identity provider.
      return editUsers(operated.localUsers ?? new UserDirectory(collections.users, secrets), request.edit)
    case 'backup':
      return writeBackup({ store, dataDir, file: request.file, withImages: request.withImages, content }).catch(
        (error: unknown) => {
          throw isUnwritable(error, request.file) ? unwritable(request.file, dataDir) : error
        },
      )
  }
}

function isUnwritable(error: unknown, file: string): boolean {
  const { code = '', path: place = '' } = error as NodeJS.ErrnoException
  return ['EACCES', 'EPERM', 'EROFS'].includes(code) && place.startsWith(file)
}

/** The command may be able to write there, but the server may run as another user or be restricted by systemd. */
function unwritable(file: string, dataDir: string): OperatorError {
  const who = userName()
  return new OperatorError(
    `The server${who === undefined ? '' : ` runs as ${who} and`} cannot write to ${path.dirname(file)}. Choose a file in ${dataDir}`,
  )
}

function userName(): string | undefined {
  try {
    return os.userInfo().username
  } catch {
    return undefined
  }
}
