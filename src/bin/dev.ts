// `svc3 dev`: the whole service in one process, for a laptop or a single host. Its connection file carries a token of the
// administrator, so that the command line beside it needs no login.
import { randomBytes } from 'node:crypto'
import { accountIdOf } from '../auth/local-users.ts'
import type { DevOptions } from '../cli/programs.ts'
import { administrator, type Connection } from './connection.ts'
import type { ControlPlane } from './control-plane.ts'
import { nextSteps } from './next-steps.ts'
import { startNodes } from './nodes.ts'
import { serve } from './serve.ts'

export const runDev = ({ dataDir, listen, driver, nodes, simulation, imageQuotaBytes }: DevOptions): Promise<number> =>
  serve({
    dataDir,
    listen,
    plainHttp: true,
    legacy: true,
    note: adminNote(),
    beside: (plane) => startNodes(plane, { dataDir, driver, nodes, simulation, imageQuotaBytes }),
    greet: async (plane) => nextSteps(dataDir, plane.localUsers && administrator),
  })

type Plane = Pick<ControlPlane, 'tokens' | 'localUsers' | 'log'>

/** The administrator's token for the connection file, as long as there is that user. */
export function adminNote(): (plane: Plane) => Promise<Pick<Connection, 'adminToken'>> {
  let isFirst = true
  let isTold = false
  return async (plane) => {
    if (isFirst) await ensureAdministrator(plane)
    isFirst = false
    const { tokens, localUsers, log } = plane
    // An organisation's own provider knows no such user: this machine's owner is the administrator.
    if (!localUsers)
      return { adminToken: (await tokens.issue({ kind: 'user', name: administrator, admin: true })).token }
    const user = localUsers.list().find(({ email }) => email === administrator)
    if (user) {
      isTold = false
      const { email: name, admin } = user
      return { adminToken: (await tokens.issue({ kind: 'user', name, admin, uid: accountIdOf(user) })).token }
    }
    if (!isTold) log.warn(`there is no user ${administrator}: commands on this machine need a login (svc3 login)`)
    isTold = true
    return {}
  }
}

/** One user from the start, with a password that nobody knows: whoever wants to log in by the page sets one. */
async function ensureAdministrator({ localUsers }: Plane): Promise<void> {
  if (!localUsers || localUsers.list().length > 0) return
  await localUsers.add(administrator, { admin: true, password: randomBytes(24).toString('base64url') })
}
