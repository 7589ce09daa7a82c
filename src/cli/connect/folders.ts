// The folders of this user that svc3 writes.
import type { Host } from '../host.ts'

/** The folder of svc3's files for this user; undefined without a home. Windows has no HOME. */
export function userFolder({ env }: Pick<Host, 'env'>, kind: 'CONFIG' | 'CACHE'): string | undefined {
  const home = env.HOME || env.USERPROFILE
  const folder = env[`XDG_${kind}_HOME`] || (home && `${home}/.${kind.toLowerCase()}`)
  return folder && `${folder}/svc3`
}
