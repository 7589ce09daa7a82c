// Prepares a guest on its new disk: grows the file system of macOS if the disk is larger than the image, as after a revert of a
// resized VM, then runs the first-boot script, at most once on each disk. A record in the VM's folder, which names the disk, is
// written before the script starts: a script that was interrupted is not repeated, because it may have done anything.
import { readFileIfPresent } from '../../platform/files.ts'
import { reasonOf } from '../../platform/reason.ts'
import { growInside, manualGrowth } from '../guest-growth.ts'
import { jsonFile } from '../json-file.ts'
import { runInGuest, waitForAgent } from './guest.ts'
import { scriptFile } from './guest-folder.ts'
import { readMachine } from './machine.ts'
import type { Tart } from './tart.ts'

interface FirstBootRecord {
  readonly version: 1
  /** tart's name of the VM, which changes with its disk. */
  readonly disk: string
  readonly isDone?: true
  readonly note?: string
}

const firstBoot = jsonFile<FirstBootRecord>('first-boot.json')
/** Names the disk whose file system has grown. */
const growth = jsonFile<Pick<FirstBootRecord, 'version' | 'disk'>>('growth.json')

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
  /** For the user: what did not work, and what to do. */
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
    this.#run(disk, signal).catch((error: unknown) => this.#tell(signal, reasonOf(error)))
  }

  /** Called when the VM stops, and before each launch: a guest may have ended by itself before its script ran. */
  end(): void {
    this.#work?.abort()
    this.#work = undefined
    this.note = undefined
  }

  async #run(disk: string, signal: AbortSignal): Promise<void> {
    const needsGrowth =
      (await readMachine(this.#folder))?.isLarger === true && (await growth.read(this.#folder))?.disk !== disk
    const known = await firstBoot.read(this.#folder)
    const isNew = known?.disk !== disk
    const script = isNew ? await readFileIfPresent(scriptFile(this.#folder)) : undefined
    if (!isNew) this.#tell(signal, known.isDone ? known.note : interrupted)
    if (!needsGrowth && script === undefined) return
    const problem = await waitForAgent(this.#tart, this.#folder, disk, signal, agentMs).then(() => undefined, reasonOf)
    if (needsGrowth) this.#tell(signal, problem ? manualGrowth(problem) : await this.#grow(disk, signal))
    if (script === undefined) return
    // The script of a runner may run for a day.
    const ending = problem
      ? `The first-boot script did not run: ${problem}`
      : await this.#runScript(disk, script, signal)
    this.#tell(signal, ending)
  }

  /** A failure is not recorded, so the warning ends when the user has grown the file system and restarted the VM. */
  async #grow(disk: string, signal: AbortSignal): Promise<string | undefined> {
    const run = (script: string) => runInGuest(this.#tart, this.#folder, disk, { script, signal })
    const problem = await growInside(run, signal)
    if (problem === undefined) await growth.write(this.#folder, { version: 1, disk })
    return problem
  }

  async #runScript(disk: string, script: string, signal: AbortSignal): Promise<string | undefined> {
    const record: FirstBootRecord = { version: 1, disk }
    await firstBoot.write(this.#folder, record)
    const options = { script: detached(script), signal, timeoutMs: scriptMs }
    const said = await runInGuest(this.#tart, this.#folder, disk, options).catch(() => '')
    signal.throwIfAborted()
    const code = /svc3-ended (\d+)/.exec(said)?.[1]
    const failed = `The first-boot script failed with exit code ${code}; its output is in ${log} in the guest`
    const note = code === '0' ? undefined : code === undefined ? interrupted : failed
    await firstBoot.write(this.#folder, { ...record, isDone: true, ...(note !== undefined && { note }) })
    return note
  }

  #tell(signal: AbortSignal, note: string | undefined): void {
    if (signal.aborted || note === undefined) return
    this.note = this.note === undefined ? note : `${this.note}. ${note}`
    this.#changed()
  }
}

const interrupted = `How the first-boot script ended is unknown, and it is not repeated; its output is in ${log} in the guest`
