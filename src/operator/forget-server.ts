// svc3 server forget: removes a server that will not come back from the cluster, in the store, where the others see it.
import { setTimeout as sleep } from 'node:timers/promises'
import { defineCommand } from '../cli/command.ts'
import { OperatorError } from '../control-plane/data-folder.ts'
import { isShared, storeAddressFor } from '../control-plane/store-place.ts'
import { graceFactor, hostOf } from '../server/cluster/servers.ts'
import type { KnownServerRecord, ServerRecord } from '../store/records/server-records.ts'
import { type Entry, ignoreLost, type Store } from '../store/store.ts'
import { explaining, withRecords } from './data.ts'
import { dataLocationOf, dataOptions } from './options.ts'

export const command = defineCommand({
  description:
    'Removes a server that will not come back. Images that only it had are lost: deployments that need them fail with that\nreason. Refused while the server is alive. A removed server that starts again rejoins.',
  ownSignals: true,
  arguments: {
    server: { value: 'SERVER', description: 'server, as HOST:PORT', required: true },
  },
  options: dataOptions,
  examples: [{ line: 'svc3 server forget 10.0.0.12:8443', does: 'Remove a server whose host was scrapped' }],
  run: ({ host }, { args, options }) =>
    explaining('Nothing was changed', async () => {
      const { dataDir, storeAddress } = dataLocationOf(host, options)
      const address = await storeAddressFor(dataDir, storeAddress)
      if (!isShared(address))
        throw new OperatorError(
          `${dataDir} has its own records and no other servers. Specify the shared store with --store ADDRESS`,
        )
      await withRecords({ dataDir, storeAddress: address }, (store) => forgetServer(store, args.server))
      host.stdout.write(
        `Server ${args.server} removed. Images that only it had are lost: delete them and upload them again.\n`,
      )
      return 0
    }),
})

const pollMs = 250

/** Removes the server with this HOST:PORT or internal URL. Throws if it is unknown or alive. */
export async function forgetServer(store: Pick<Store, 'get' | 'list' | 'delete'>, name: string): Promise<void> {
  const known = (await store.list('/known-servers/'))
    .entries as readonly Entry<unknown>[] as readonly Entry<KnownServerRecord>[]
  const named = known.filter(({ value }) => [hostOf(value), value.internalUrl].includes(name))
  if (named.length === 0) {
    const hosts = [...new Set(known.map(({ value }) => hostOf(value)))]
    throw new OperatorError(
      `Server ${name} not found; ${hosts.length === 0 ? 'no servers are known' : `known servers: ${hosts.join(', ')}`}`,
    )
  }
  // The same address may belong to a running server and to a former one with another data folder.
  const renewed = await Promise.all(named.map(({ value: { id } }) => isRenewed(store, `/servers/${id}`)))
  const gone = named.filter((_, index) => !renewed[index])
  if (gone.length === 0) throw new OperatorError(`Server ${name} is alive. Stop it for good first`)
  for (const { key, rev } of gone) await store.delete(key, rev).catch(ignoreLost)
}

/** Whether the server renews its record within its lease, as other servers judge it. A stopped server has no record. */
async function isRenewed(store: Pick<Store, 'get'>, key: string): Promise<boolean> {
  const first = (await store.get(key)) as Entry<ServerRecord> | undefined
  if (!first) return false
  const end = performance.now() + first.value.leaseMs * graceFactor
  for (;;) {
    const isOver = performance.now() >= end
    const now = await store.get(key)
    if (!now || now.rev !== first.rev) return now !== undefined
    if (isOver) return false
    await sleep(Math.min(pollMs, first.value.leaseMs))
  }
}
