// svc3 server migrate-store
import { defineCommand } from '../../command.ts'
import { UsageError } from '../../line/usage.ts'
import { checkedStore, fileOf } from './options.ts'

export const command = defineCommand({
  description:
    'Moves the records of a data folder from SQLite to etcd. Stop the server first. The folder stays in use for everything\nelse; its old records are marked, and no server starts on them. Cut off, the same command goes on.',
  ownSignals: true,
  arguments: {
    from: { value: 'FROM', description: 'data folder whose records are in SQLite, also as sqlite:DIR', required: true },
    to: { value: 'TO', description: 'empty place in etcd, etcd://HOST:PORT,…/PREFIX', required: true },
  },
  options: {},
  examples: [
    {
      line: 'svc3 server migrate-store /var/lib/svc3 etcd://a:2379,b:2379,c:2379/svc3',
      does: 'From one server to as many as are needed',
    },
  ],
  run({ host }, { args }) {
    if (args.from.startsWith('etcd:'))
      throw new UsageError(
        'records can be moved from SQLite only',
        'to go from etcd to another place, use svc3 server backup and restore',
      )
    const to = checkedStore(args.to)
    if (to === undefined) throw new UsageError('TO is missing', 'write etcd://HOST:PORT,…/PREFIX')
    return host.programs.migrateStore({ dataDir: fileOf(host, args.from.replace(/^sqlite:/, '')), to })
  },
})
