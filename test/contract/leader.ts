// A process that contends for leadership on etcd, and while it leads writes its term into one record, again and again.
// `node leader.ts <url> <prefix> <name> <lease ms>`. Says "leads TERM", "lost TERM" and "conflict TERM" on stdout.
import fs from 'node:fs'
import { startLeadership } from '../../src/controllers/leadership.ts'
import { openEtcd } from '../../src/store/etcd/engine.ts'
import { type Entry, StoreError } from '../../src/store/store.ts'

const [url = '', prefix = '', holder = '', lease = ''] = process.argv.slice(2)
const say = (line: string): void => void fs.writeSync(1, `${line}\n`)
const quiet = () => undefined
const store = await openEtcd({ endpoints: [{ url }], prefix, notice: quiet })

startLeadership({
  store,
  name: 'work',
  holder,
  leaseMs: Number(lease),
  log: { info: quiet, error: (message, _, error) => say(`error ${message} ${String(error)}`) },
  lead: (term) => {
    say(`leads ${term}`)
    const stopping = new AbortController()
    const working = work(term, stopping.signal)
    return async () => {
      stopping.abort()
      await working
      say(`lost ${term}`)
    }
  },
})

async function work(term: number, signal: AbortSignal): Promise<void> {
  // As controllers do: read once, then every write expects its own last.
  let entry: Entry | undefined = await store.get('/work')
  while (!signal.aborted) {
    try {
      entry = entry ? await store.update('/work', term, entry.rev) : await store.create('/work', term)
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      say(`${error.fault.toLowerCase()} ${term}`)
      return
    }
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
