// What runner pools need of a server: GitHub with opened credentials, and VMs.
import os from 'node:os'
import type { RunnerServices } from '../controllers/runners/drive-runners.ts'
import { runnerLabel } from '../controllers/runners/pool-driver.ts'
import type { RetryPolicy } from '../rules/retry.ts'
import { parseRunnerScope } from '../rules/runners/scope.ts'
import type { GitHubCredential } from '../runners/github/connection.ts'
import { githubSource } from '../runners/github/scale-set.ts'
import { SourceError } from '../runners/source.ts'
import { createVm } from '../server/vms/deployment.ts'
import type { RunnerPoolRecord } from '../store/records/runner-records.ts'
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
      return githubSource({
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
      // A first-boot script needs a boot, also where the image carries memory.
      const request = {
        namespace,
        body: { name, vmConfig: config, userdata, noWarm: true, cold: true, labels: { [runnerLabel]: pool.name } },
        owner,
        now: clock.now(),
        requestKey: undefined,
        isAwaited: false,
      }
      const entry = await createVm(server, request, async () => undefined)
      return entry.value.uid
    },

    ...(retry && { retry }),

    credentialRev: (pool) => sealedOf(pool)?.rev ?? '',
  }
}
