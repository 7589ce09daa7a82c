// Validates what callers send to create or change a runner pool, and applies it to the record.
import { type Cause, invalidField, invalidIf } from '../../api/errors.ts'
import type { RunnerCredentialInput, RunnerPoolChange, RunnerPoolInput } from '../../api/vms/runner-pools.ts'
import { defined } from '../../platform/defined.ts'
import { parseTtl } from '../../rules/durations.ts'
import { isVmConfigName } from '../../rules/names.ts'
import { isGuestUser, isRunnerFolder } from '../../rules/runners/start-script.ts'
import type { RunnerPoolRecord } from '../../store/records/runner-records.ts'

/** VMs of the pool are named after it, with a suffix. */
const maxNameLength = 40
const labelForm = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/

type RunnerCredential =
  | { readonly kind: RunnerPoolRecord['credential']; readonly secret: string }
  | { readonly causes: readonly Cause[] }

/** Returns a complete GitHub App or token, or the problems. No message repeats a secret. */
export function validCredential(
  { appId, installationId, privateKey, token }: RunnerCredentialInput,
  isEnterprise: boolean,
): RunnerCredential {
  const wrong = (message: string): RunnerCredential => ({ causes: [invalidField('credential', message)] })
  if (token !== undefined) {
    if (appId !== undefined || installationId !== undefined || privateKey !== undefined)
      return wrong('specify a token or a GitHub App, not both')
    return /^[\x21-\x7e]+$/.test(token)
      ? { kind: { kind: 'token' }, secret: token }
      : wrong('token is empty, or has spaces or other characters that no token has')
  }
  if (appId === undefined || installationId === undefined || privateKey === undefined)
    return wrong('specify appId, installationId and privateKey of a GitHub App, or a token')
  if (isEnterprise) return wrong('an enterprise needs a token: GitHub Apps cannot register runners there')
  if (!/^[A-Za-z0-9._-]+$/.test(appId)) return wrong('appId is not the id or client id of a GitHub App')
  if (!/^\d+$/.test(installationId)) return wrong('installationId is not a number')
  if (!/^-----BEGIN (RSA )?PRIVATE KEY-----\s/.test(privateKey))
    return wrong('privateKey is not a private key in PEM, as GitHub lets you download it')
  return { kind: { kind: 'app', appId, installationId }, secret: privateKey }
}

export const newPoolProblems = ({ name, scaleSet = name, group, ...settings }: RunnerPoolInput): Cause[] => [
  ...invalidIf(
    !isVmConfigName(name) || name.length > maxNameLength || !/^[a-z]/.test(name),
    'name',
    `"${name.slice(0, 100)}" is not a valid name: use at most ${maxNameLength} lowercase letters, digits and dashes, beginning with a letter`,
  ),
  ...settingProblems(settings),
  ...invalidIf(!labelForm.test(scaleSet), 'scaleSet', 'scaleSet has characters that no label has'),
  ...invalidIf(
    group !== undefined && !/^[^\p{Cc}]{1,100}$/u.test(group),
    'group',
    'group is not the name of a runner group',
  ),
]

type Settings = Pick<
  RunnerPoolChange,
  'connectWithin' | 'idleFor' | 'runnerFolder' | 'user' | 'labels' | 'ssh' | 'firstBoot'
>

export function settingProblems(settings: Settings): Cause[] {
  const { connectWithin, idleFor, runnerFolder, user, labels = [] } = settings
  const badLabel = labels.find((label) => !labelForm.test(label))
  return [
    ...tooShort('connectWithin', connectWithin, '3m'),
    ...tooShort('idleFor', idleFor, '5m'),
    ...invalidIf(
      runnerFolder !== undefined && !isRunnerFolder(runnerFolder),
      'runnerFolder',
      'runnerFolder is not an absolute path of letters, digits, dots, dashes and slashes',
    ),
    ...invalidIf(user !== undefined && !isGuestUser(user), 'user', 'user is not the name of a user'),
    ...guestProblems(settings),
    ...invalidIf(badLabel !== undefined, 'labels', `invalid label "${badLabel?.slice(0, 50)}"`),
  ]
}

const tooShort = (field: string, text: string | undefined, example: string): Cause[] =>
  invalidIf(
    text !== undefined && (parseTtl(text) ?? 0) < 10,
    field,
    `${field} "${text}" is not a duration of at least 10 s; use ${example}, for example`,
  )

/** Login data for guests must be complete, and for one way to log in. No message repeats a secret. */
function guestProblems({ ssh, firstBoot }: Settings): Cause[] {
  if (!ssh) return []
  const wrong = (message: string): Cause[] => [invalidField('ssh', message)]
  if (firstBoot) return wrong('specify ssh or firstBoot, not both')
  if (!isGuestUser(ssh.user)) return wrong('ssh.user is not the name of a user')
  if ((ssh.password === undefined) === (ssh.privateKey === undefined))
    return wrong('specify ssh.password or ssh.privateKey, one of them')
  if (ssh.password !== undefined && !/^[^\p{Cc}]+$/u.test(ssh.password))
    return wrong('ssh.password is empty, or has control characters')
  return ssh.privateKey === undefined || /^-----BEGIN [A-Z ]*PRIVATE KEY-----\s/.test(ssh.privateKey)
    ? []
    : wrong('ssh.privateKey is not a private key in PEM or of OpenSSH')
}

export const idleProblems = ({ minIdle, max }: RunnerPoolRecord): Cause[] =>
  invalidIf(minIdle > max, 'minIdle', `minIdle is ${minIdle}, but max is ${max}`)

type Change = Omit<RunnerPoolChange, 'config'> & Pick<RunnerPoolInput, 'labels'> & { config?: string }

export function changedPool({ isDrained, sshUser, ...record }: RunnerPoolRecord, change: Change): RunnerPoolRecord {
  const { config, minIdle, max, labels, connectWithin, idleFor, runnerFolder, user, ssh, firstBoot, paused } = change
  return {
    ...record,
    ...(isDrained && paused !== false && { isDrained }),
    ...defined({
      config,
      minIdle,
      max,
      labels: labels && [...new Set(labels)],
      connectSeconds: connectWithin === undefined ? undefined : parseTtl(connectWithin),
      idleSeconds: idleFor === undefined ? undefined : parseTtl(idleFor),
      runnerFolder,
      user,
      sshUser: ssh?.user ?? (firstBoot ? undefined : sshUser),
      isPaused: paused,
    }),
  }
}
