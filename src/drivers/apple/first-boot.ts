// Runs the first-boot script of a VM in its guest, at most once on each disk. A record in the VM's folder, which names the disk, is
// written before the script starts: a script that was interrupted is not repeated, because it may have done anything.
import fs from 'node:fs/promises'
import { reasonOf } from '../../platform/reason.ts'
import { jsonFile } from '../json-file.ts'
import { runInGuest, waitForAgent } from './guest.ts'
import { scriptFile } from './guest-folder.ts'
import type { Tart } from './tart.ts'

interface FirstBootRecord {
  readonly version: 1
  /** tart's name of the VM, which changes with its disk. */
  readonly disk: string
  readonly isDone?: true
  readonly note?: string
}

const { read, write } = jsonFile<FirstBootRecord>('first-boot.json')

/** A first boot of macOS takes minutes. */
const agentMs = 300_000
/** A runner of jobs is started by such a script, and ends with it. */
const scriptMs = 86_400_000
const log = '/var/log/svc3-first-boot.log'

/**
 * The script survives the end of the connection, and has the usual umask: others may need the files that it makes. Its output
 * may be secret, and stays in the guest.
 */
const detached = (script: string): string => `umask 077
d=$(mktemp -d /tmp/svc3.XXXXXX) || exit 1
cat > "$d/start" <<'svc3-end'
${script}
svc3-end
chmod 700 "$d/start"
(umask 022; trap '' HUP; "$d/start"; echo $? > "$d/code") > ${log} 2>&1 < /dev/null &
wait $!
echo svc3-ended "$(cat "$d/code")"
rm -rf "$d"
`

export class FirstBoot {
  readonly #tart: Tart
  readonly #folder: string
  readonly #changed: () => void
  #work: AbortController | undefined
  /** For the user: why the script did not run, or that it failed. */
  note: string | undefined

  constructor(tart: Tart, folder: string, changed: () => void) {
    this.#tart = tart
    this.#folder = folder
    this.#changed = changed
  }

  /** May be repeated while the VM runs. */
  begin(disk: string): void {
    if (this.#work) return
    this.#work = new AbortController()
    const { signal } = this.#work
    const ended = (note: string | undefined): void => {
      if (signal.aborted || note === undefined) return
      this.note = note
      this.#changed()
    }
    this.#run(disk, signal).then(ended, (error: unknown) =>
      ended(`The first-boot script did not run: ${reasonOf(error)}`),
    )
  }

  /** Called when the VM stops, and before each launch: a guest may have ended by itself before its script ran. */
  end(): void {
    this.#work?.abort()
    this.#work = undefined
    this.note = undefined
  }

  async #run(disk: string, signal: AbortSignal): Promise<string | undefined> {
    const known = await read(this.#folder)
    if (known?.disk === disk) return known.isDone ? known.note : interrupted
    const script = await fs.readFile(scriptFile(this.#folder), 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
    })
    if (script === undefined) return undefined
    await waitForAgent(this.#tart, this.#folder, disk, signal, agentMs)
    const record: FirstBootRecord = { version: 1, disk }
    await write(this.#folder, record)
    const options = { script: detached(script), signal, timeoutMs: scriptMs }
    const said = await runInGuest(this.#tart, this.#folder, disk, options).catch(() => '')
    signal.throwIfAborted()
    const code = /svc3-ended (\d+)/.exec(said)?.[1]
    const failed = `The first-boot script failed with exit code ${code}; its output is in ${log} in the guest`
    const note = code === '0' ? undefined : code === undefined ? interrupted : failed
    await write(this.#folder, { ...record, isDone: true, ...(note !== undefined && { note }) })
    return note
  }
}

const interrupted = `How the first-boot script ended is unknown, and it is not repeated; its output is in ${log} in the guest`
