// The options for settings and credentials of a runner pool, for creating and updating one.
import type { RunnerCredentialInput, RunnerPoolChange } from '../../../api/vms/runner-pools.ts'
import { defined } from '../../../platform/defined.ts'
import type { Context, OptionValues } from '../../command.ts'
import { readPassword } from '../../connect/password.ts'
import { readInputFile } from '../../input.ts'
import { UsageError } from '../../line/usage.ts'

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

type Settings = OptionValues<typeof settingOptions>

export function settingsOf(options: Settings) {
  const { 'min-idle': minIdle, max, label, user } = options
  if (minIdle !== undefined && max !== undefined && minIdle > max)
    throw new UsageError(`--min-idle ${minIdle} is more than --max ${max}`, 'Raise --max')
  return defined({
    minIdle,
    max,
    labels: label.length > 0 ? [...label] : undefined,
    connectWithin: options['connect-within'],
    idleFor: options['idle-for'],
    runnerFolder: options['runner-folder'],
    user,
  })
}

/** How to start runners by SSH; empty if no option says so. */
export function guestOf(context: Context, options: Settings): Pick<RunnerPoolChange, 'ssh'> {
  const { 'ssh-user': user, 'ssh-password-file': passwordFile, 'ssh-key': keyFile } = options
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

/** Returns the credential for GitHub; undefined if no option names one. */
export async function credentialOf(
  context: Context,
  options: OptionValues<typeof credentialOptions>,
): Promise<RunnerCredentialInput | undefined> {
  const { 'app-id': appId, 'installation-id': installationId, 'private-key': file, 'token-stdin': isToken } = options
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
  const secret = readInputFile(context.host, file, `Check the path of ${option}`).toString('utf8')
  context.secrets.add(secret)
  return secret
}
