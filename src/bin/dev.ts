// `svc3 dev`: the whole service in one process, for a laptop or a single host. Its connection file carries a token of the
// administrator, so that the command line beside it needs no login.
import { randomBytes } from 'node:crypto'
import type { User } from '../auth/principal.ts'
import { accountIdOf } from '../auth/provider/local-users.ts'
import type { DevOptions } from '../cli/programs.ts'
import { administrator, type Connection } from '../control-plane/connection.ts'
import type { ControlPlane } from '../control-plane/control-plane.ts'
import { nextSteps } from '../control-plane/next-steps.ts'
import { serve } from '../control-plane/serve.ts'
import { startNodes } from './nodes.ts'

export const runDev = ({
  dataDir,
  listen,
  driver,
  nodes,
  simulation,
  imageQuotaBytes,
  images,
}: DevOptions): Promise<number> =>
  serve({
    dataDir,
    listen,
    images,
    plainHttp: true,
    legacy: true,
    note: adminNote(),
    beside: (plane) => startNodes(plane, { dataDir, driver, nodes, simulation, imageQuotaBytes }),
    greet: async (plane) =>
      nextSteps({ dataDir, user: plane.localUsers && administrator, consoleLink: consoleLink(plane) }),
  })

type Plane = Pick<ControlPlane, 'tokens' | 'localUsers' | 'log'>

/** In the fragment, which browsers keep to themselves; and not the token, but good for one login. */
function consoleLink(plane: Pick<ControlPlane, 'consoleUrl' | 'browserSessions' | 'localUsers'>): string | undefined {
  const { consoleUrl, browserSessions, localUsers } = plane
  const person = administratorOf(localUsers)
  return consoleUrl === undefined || !person
    ? consoleUrl
    : `${consoleUrl}#ticket=${browserSessions.issueTicket(person)}`
}

/** An organisation's own provider knows no such user: this machine's owner is the administrator. */
function administratorOf(localUsers: ControlPlane['localUsers']): User | undefined {
  if (!localUsers) return { kind: 'user', name: administrator, admin: true }
  const user = localUsers.list().find(({ email }) => email === administrator)
  return user && { kind: 'user', name: user.email, admin: user.admin, uid: accountIdOf(user) }
}

/** The administrator's token for the connection file, as long as there is that user. */
export function adminNote(): (plane: Plane) => Promise<Pick<Connection, 'adminToken'>> {
  let isFirst = true
  let isTold = false
  return async (plane) => {
    if (isFirst) await ensureAdministrator(plane)
    isFirst = false
    const { tokens, localUsers, log } = plane
    const user = administratorOf(localUsers)
    if (user) {
      isTold = false
      return { adminToken: (await tokens.issue(user)).token }
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
