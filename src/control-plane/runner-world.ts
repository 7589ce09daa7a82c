// Connects the controller of runner pools to GitHub, with decrypted credentials, and to VMs.
import os from 'node:os'
import type { RunnerServices } from '../controllers/runners/drive-runners.ts'
import { runnerLabel } from '../controllers/runners/driven-pool.ts'
import type { RetryPolicy } from '../platform/retry.ts'
import { parseRunnerScope } from '../rules/runners/scope.ts'
import type { GitHubCredential } from '../runners/github/connection.ts'
import { GitHubSource } from '../runners/github/scale-set.ts'
import { SourceError } from '../runners/source.ts'
import { runAsRoot } from '../server/nodes/guest-commands.ts'
import type { GuestLogin } from '../server/nodes/ssh-login.ts'
import { createVm } from '../server/vms/deployment.ts'
import { guestSecretName, type RunnerPoolRecord } from '../store/records/runner-records.ts'
import type { Server } from './assemble.ts'

/** `retry`: tests shorten it. */
export function runnerWorld(server: Server, retry?: RetryPolicy): RunnerServices {
  const { collections, secrets, clock } = server
  const sealedOf = ({ uid }: RunnerPoolRecord) => collections.runnerCredentials.get('', uid)

  function credentialOf(pool: RunnerPoolRecord): GitHubCredential {
    const entry = sealedOf(pool)
    if (!entry) throw new SourceError('Unauthorized', 'The runner pool has no credentials; set them again')
    const secret = secrets.open(entry.key, entry.value)
    const { credential } = pool
    return credential.kind === 'app' ? { ...credential, privateKey: secret } : { kind: 'token', token: secret }
  }

  return {
    sourceOf(pool) {
      const parsed = parseRunnerScope(pool.url)
      if (!parsed.ok) throw new SourceError('Refused', parsed.problem)
      const { scaleSet: name, labels, group } = pool
      const ownerName = `svc3 ${os.hostname()}`
      return new GitHubSource({
        scope: parsed.scope,
        credential: credentialOf(pool),
        clock,
        name,
        labels,
        group,
        ownerName,
        retry,
      })
    },

    async deploy(pool, name, userdata) {
      const { namespace, owner, config } = pool
      // A first-boot script needs a boot, even if the image has memory. Without a script, a warm VM is fine.
      const first = userdata === undefined ? {} : { userdata, noWarm: true, cold: true }
      const request = {
        namespace,
        body: { name, vmConfig: config, ...first },
        ownLabels: { [runnerLabel]: pool.name },
        owner,
        now: clock.now(),
        requestKey: undefined,
        isAwaited: false,
        imageStart: server.settings.images.start,
      }
      const entry = await createVm(server, request, async () => undefined)
      return entry.value.uid
    },

    start(pool, vm, prepare, signal) {
      const entry = collections.runnerCredentials.get('', guestSecretName(pool))
      if (!entry || pool.sshUser === undefined)
        throw new Error('The runner pool has no password or key for its guests; set them again')
      const secret = JSON.parse(secrets.open(entry.key, entry.value)) as Omit<GuestLogin, 'user'>
      const login = { user: pool.sshUser, ...secret }
      const withinMs = pool.connectSeconds * 1_000
      return runAsRoot({ dial: () => server.tunnels.dial(vm, 'ssh'), login, withinMs, signal }, prepare)
    },

    ...(retry && { retry }),

    credentialRev: (pool) => sealedOf(pool)?.rev ?? '',
  }
}
