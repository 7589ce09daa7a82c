// The first commands to try, as lines to paste into a shell in the current folder.
import path from 'node:path'
import { checkoutFolder, isCheckout, usualDataDir } from './checkout.ts'

/** How this program is called from here. */
export function programLine(): string {
  if (!isCheckout(checkoutFolder())) return 'svc3'
  const program = path.join(checkoutFolder(), 'bin', 'svc3')
  const relative = path.relative(process.cwd(), program)
  return relative.startsWith('..') ? program : relative
}

interface NextSteps {
  readonly dataDir: string
  readonly apiUrl: string
  /** Has no known password yet. */
  readonly user: string | undefined
  /** Logs in whoever opens it first. */
  readonly consoleLink: string | undefined
  /** The configured context that commands would use, when that is another server. */
  readonly context: string | undefined
  /** Variables of the environment that would lead commands to another server. */
  readonly variables: readonly string[]
}

/** A word of a shell's line. */
export const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`

export function nextSteps(steps: NextSteps): string {
  const { apiUrl, user, consoleLink, context, variables } = steps
  const svc3 = programLine()
  const dataDir = path.resolve(steps.dataDir)
  const isUsual = dataDir === usualDataDir()
  const lines = [
    ...(variables.length > 0 ? [`unset ${variables.join(' ')}`] : []),
    ...(isUsual && context === undefined ? [] : [`export SVC3_DATA=${quoted(dataDir)}`]),
    `${svc3} vm deploy demo --image tiny-amd64`,
    `${svc3} vm ssh demo`,
    `${svc3} --help`,
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
    ...(user === undefined ? [] : [`Set a password for svc3 login: ${svc3} server users reset ${user}${here}`]),
    `API reference: ${apiUrl}/api/v1/swagger`,
    `Press Ctrl-C to stop. Data is kept in ${dataDir}`,
    '',
  ].join('\n')
}
