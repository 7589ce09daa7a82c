// The first commands to try, as lines to paste into a shell in the current folder.
import path from 'node:path'
import { quoted } from '../rules/shell-word.ts'
import { usualDataDir } from './checkout.ts'

export const firstImage = 'tiny-amd64'

interface NextSteps {
  /** How users call this program in the current folder. */
  readonly program: string
  readonly dataDir: string
  readonly apiUrl: string
  /** The local user to log in as, whose password has to be set first. Undefined with another identity provider. */
  readonly user: string | undefined
  /** Logs in the first person who opens it. */
  readonly consoleLink: string | undefined
  /** The configured context, if commands would use it instead of this server. */
  readonly context: string | undefined
  /** Environment variables that would direct commands to another server. */
  readonly variables: readonly string[]
  /** Simulated VMs have no shell. */
  readonly isSimulated: boolean
}

export function nextSteps(steps: NextSteps): string {
  const { program, apiUrl, user, consoleLink, context, variables, isSimulated } = steps
  const dataDir = path.resolve(steps.dataDir)
  const isUsual = dataDir === usualDataDir()
  const lines = [
    ...(variables.length > 0 ? [`unset ${variables.join(' ')}`] : []),
    ...(isUsual && context === undefined ? [] : [`export SVC3_DATA=${quoted(dataDir)}`]),
    `${program} vm deploy demo --image ${firstImage}`,
    ...(isSimulated ? [] : [`${program} vm ssh demo`]),
    `${program} --help`,
  ]
  const here = isUsual ? '' : ` --data ${quoted(dataDir)}`
  return [
    ...(consoleLink === undefined
      ? []
      : ['', 'Open the console (the link logs you in and works once):', `  ${consoleLink}`]),
    '',
    'Try in another terminal:',
    ...lines.map((line) => `  ${line}`),
    '',
    ...(context === undefined ? [] : [`SVC3_DATA overrides your configured context ${context}.`]),
    ...(user === undefined
      ? []
      : [`Set a password to log in as ${user}: ${program} server users reset ${user}${here}`]),
    `API reference: ${apiUrl}/api/v1/swagger`,
    `Press Ctrl-C to stop. Data is kept in ${dataDir}`,
    '',
  ].join('\n')
}
