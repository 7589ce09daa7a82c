// The folders of a user. Windows has no HOME, but USERPROFILE.
import type { Host } from '../host.ts'

const usual = { CONFIG: '.config', CACHE: '.cache' } as const

export const homeOf = ({ env }: Pick<Host, 'env'>): string | undefined => env.HOME || env.USERPROFILE

/** The folder of svc3's files; undefined without a home. */
export function userFolder(host: Pick<Host, 'env'>, kind: keyof typeof usual): string | undefined {
  const home = homeOf(host)
  const folder = host.env[`XDG_${kind}_HOME`] || (home && `${home}/${usual[kind]}`)
  return folder && `${folder}/svc3`
}
