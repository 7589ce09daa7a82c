// The settings and credentials of a runner pool on the command line, the same to create and to change one.
import fs from 'node:fs'
import path from 'node:path'
import type { RunnerCredentialInput, RunnerPoolChange } from '../../../api/vms/runner-pools.ts'
import type { Context } from '../../command.ts'
import { readPassword } from '../../connect/password.ts'
import { Failure, UsageError } from '../../line/usage.ts'

export const settingOptions = {
  'min-idle': {
    type: 'integer',
    value: 'N',
    min: 0,
    max: 1_000,
    description: 'Runners that wait for jobs (default: 0)',
  },
  max: { type: 'integer', value: 'N', min: 1, max: 1_000, description: 'VMs at most (default: 10)' },
  label: {
    type: 'string',
    value: 'LABEL',
    repeatable: true,
    description: 'Label that runs-on names (default: the scale set)',
  },
  'connect-within': {
    type: 'string',
    value: 'DURATION',
    description: 'Replace a VM whose runner has not connected in this time (default: 3m)',
  },
  'idle-for': {
    type: 'string',
    value: 'DURATION',
    description: 'Remove runners above --min-idle after this time without a job (default: 5m)',
  },
  'runner-folder': {
    type: 'string',
    value: 'PATH',
    description: 'Where the runner is in the image (default: /opt/actions-runner)',
  },
  user: { type: 'string', value: 'USER', description: 'User of the guest that runs the runner (default: root)' },
  'ssh-user': {
    type: 'string',
    value: 'USER',
    description: 'Start the runner by SSH as this user, who is root or may use sudo (default: first-boot data)',
  },
  'ssh-password-file': { type: 'string', value: 'FILE', description: 'File with the password of --ssh-user' },
  'ssh-key': { type: 'string', value: 'FILE', description: 'Private key of --ssh-user, instead of a password' },
} as const

export const credentialOptions = {
  'app-id': { type: 'string', value: 'ID', description: 'Id or client id of the GitHub App' },
  'installation-id': { type: 'string', value: 'ID', description: 'Id of its installation' },
  'private-key': { type: 'string', value: 'FILE', description: 'Private key of the App, as downloaded from GitHub' },
  'token-stdin': { type: 'boolean', description: 'Read a personal access token from standard input instead' },
} as const

interface Settings {
  readonly 'min-idle'?: number | undefined
  readonly max?: number | undefined
  readonly label: readonly string[]
  readonly 'connect-within'?: string | undefined
  readonly 'idle-for'?: string | undefined
  readonly 'runner-folder'?: string | undefined
  readonly user?: string | undefined
}

type SettingFields = 'minIdle' | 'max' | 'labels' | 'connectWithin' | 'idleFor' | 'runnerFolder' | 'user'

export function settingsOf(options: Settings): Pick<RunnerPoolChange, SettingFields> {
  const { 'min-idle': minIdle, max, label, user } = options
  const { 'connect-within': connectWithin, 'idle-for': idleFor, 'runner-folder': runnerFolder } = options
  if (minIdle !== undefined && max !== undefined && minIdle > max)
    throw new UsageError(`--min-idle ${minIdle} is more than --max ${max}`, 'Raise --max')
  return {
    ...(minIdle !== undefined && { minIdle }),
    ...(max !== undefined && { max }),
    ...(label.length > 0 && { labels: [...label] }),
    ...(connectWithin !== undefined && { connectWithin }),
    ...(idleFor !== undefined && { idleFor }),
    ...(runnerFolder !== undefined && { runnerFolder }),
    ...(user !== undefined && { user }),
  }
}

interface GivenGuest {
  readonly 'ssh-user'?: string | undefined
  readonly 'ssh-password-file'?: string | undefined
  readonly 'ssh-key'?: string | undefined
}

/** How runners are started by SSH; empty: not told. */
export function guestOf(context: Context, given: GivenGuest): Pick<RunnerPoolChange, 'ssh'> {
  const { 'ssh-user': user, 'ssh-password-file': passwordFile, 'ssh-key': keyFile } = given
  if (user === undefined && passwordFile === undefined && keyFile === undefined) return {}
  if (user === undefined || (passwordFile === undefined) === (keyFile === undefined))
    throw new UsageError(
      'The SSH login of the guest is incomplete',
      'Specify --ssh-user with --ssh-password-file or --ssh-key',
    )
  if (keyFile !== undefined) return { ssh: { user, privateKey: readSecret(context, keyFile, '--ssh-key') } }
  const password = readSecret(context, passwordFile ?? '', '--ssh-password-file').replace(/\r?\n$/, '')
  context.secrets.add(password)
  return { ssh: { user, password } }
}

interface Given {
  readonly 'app-id'?: string | undefined
  readonly 'installation-id'?: string | undefined
  readonly 'private-key'?: string | undefined
  readonly 'token-stdin': boolean
}

/** Undefined: none was given. */
export async function credentialOf(context: Context, given: Given): Promise<RunnerCredentialInput | undefined> {
  const { 'app-id': appId, 'installation-id': installationId, 'private-key': file, 'token-stdin': isToken } = given
  const isApp = appId !== undefined || installationId !== undefined || file !== undefined
  const advice = 'Specify --app-id, --installation-id and --private-key, or --token-stdin'
  if (isToken && isApp) throw new UsageError('Specify a GitHub App or a token, not both', advice)
  if (isToken)
    return {
      token: await readPassword(context, 'Token: ', {
        noun: 'token',
        next: 'Pipe it in, for example: --token-stdin < token.txt',
      }),
    }
  if (!isApp) return undefined
  if (appId === undefined || installationId === undefined || file === undefined)
    throw new UsageError('The GitHub App is incomplete', advice)
  return { appId, installationId, privateKey: readSecret(context, file, '--private-key') }
}

function readSecret(context: Context, file: string, option: string): string {
  const place = path.resolve(context.host.workingDir, file)
  try {
    const key = fs.readFileSync(place, 'utf8')
    context.secrets.add(key)
    return key
  } catch (error) {
    throw new Failure(`Cannot read ${place} (${(error as NodeJS.ErrnoException).code})`, `Check the path of ${option}`)
  }
}
