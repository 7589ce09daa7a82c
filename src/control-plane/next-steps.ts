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
  /** Has no known password yet. */
  readonly user: string | undefined
  /** Logs in whoever opens it first. */
  readonly consoleLink: string | undefined
}

export function nextSteps({ dataDir, user, consoleLink }: NextSteps): string {
  const svc3 = programLine()
  const isDefault = path.resolve(dataDir) === usualDataDir()
  return `${consoleLink === undefined ? '' : `\nOpen the console in a browser; this link logs you in, once:\n  ${consoleLink}\n`}
Try in another terminal:
${isDefault ? '' : `  export SVC3_DATA=${path.resolve(dataDir)}\n`}  ${svc3} vm deploy demo --image tiny-amd64
  ${svc3} vm ssh demo
  ${svc3} --help
${user === undefined ? '' : `"svc3 login" works after "${svc3} server users reset ${user}", which sets a password.\n`}The API is described at /api/v1/swagger. Ctrl-C stops the service; the data stays.
`
}
