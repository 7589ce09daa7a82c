// What to try first, as lines that can be pasted into a shell standing where the person stands.
import path from 'node:path'
import { checkoutFolder } from './checkout.ts'

export function nextSteps(dataDir: string): string {
  const checkout = checkoutFolder()
  const relative = path.relative(process.cwd(), path.join(checkout, 'bin', 'svc3'))
  const svc3 = relative.startsWith('..') ? path.join(checkout, 'bin', 'svc3') : relative
  const isDefault = path.resolve(dataDir) === path.join(checkout, '.svc3')
  return `
Try in another terminal:
${isDefault ? '' : `  export SVC3_DATA=${path.resolve(dataDir)}\n`}  ${svc3} regcred add https://ghcr.io --username me --password-stdin
  ${svc3} regcred list
  ${svc3} --help
The API is described at /api/v1/swagger. Ctrl-C stops the service; the data stays.
`
}
