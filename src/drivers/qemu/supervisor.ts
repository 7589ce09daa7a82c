// The supervisor beside a QEMU, which records how it ended; and how a restarted agent finds both.
import path from 'node:path'
import { childEnvironment, lastLines } from '../../platform/exec.ts'
import type { ProcessId } from '../../platform/processes.ts'
import { endOfLog } from '../logs.ts'
import * as supervised from '../supervised.ts'
import { files, type QemuRun } from './control/run.ts'
import { networkPlaces, sealedName } from './network/network.ts'

/**
 * The script is constant; its input comes as arguments. Core dumps are off because they contain a guest's memory. If the
 * host runs out of memory, a VM is killed rather than the agent. Only QEMU holds the FIFO open; after the last process of
 * the VM its sockets are removed, so that nothing stays in /tmp if no agent returns.
 */
const supervisor = `umask 077
ulimit -c 0
ulimit -n 4096
{ echo 300 > /proc/self/oom_score_adj; } 2> /dev/null
life=$1
shift
mkfifo "$life"
"$@" 9<> "$life" &
echo $! $$ > ${files.pid}
wait $!
echo $? > ${files.exit}
exec 2> /dev/null
sockets=\${life%/*}
for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  grep -qF "$sockets" "/proc/$(cat "$sockets/net.pid")/cmdline" || break
  sleep 0.02
done
rm -rf "$sockets"
`
const supervisorName = 'svc3-vm'

/** `memory` is open as descriptor 3. */
export const spawnQemu = (
  folder: string,
  runtime: string,
  command: readonly string[],
  memory?: string,
): supervised.Supervised =>
  supervised.spawnSupervised(folder, {
    script: supervisor,
    name: supervisorName,
    words: [networkPlaces(runtime).life, ...command],
    env: childEnvironment,
    log: path.join(folder, files.log),
    input: memory,
  })

const marksOf = ({ runtime }: QemuRun): supervised.Marks => ({
  text: runtime,
  isProgram: ([program = '']) => path.basename(program).startsWith('qemu-system-'),
  // The program that seals, before it becomes QEMU.
  isForerunner: (words) => words.includes(supervisorName) || words.includes(sealedName),
  isSupervisor: (words) => words.includes(supervisorName) && words.includes(networkPlaces(runtime).life),
})

export const isOfThisBoot = (run: QemuRun): Promise<boolean> => supervised.isOfThisBoot(run, marksOf(run))

export const findProcess = (folder: string, run: QemuRun, timeoutMs?: number): Promise<ProcessId | undefined> =>
  supervised.findSupervised(folder, run.process, marksOf(run), timeoutMs)

export const waitForSupervisor = (folder: string, run: QemuRun): Promise<void> =>
  supervised.waitForSupervisor(folder, run, marksOf(run))

/** How a process ended, with the last output of QEMU. */
export const describeEnd = async (folder: string): Promise<string> =>
  supervised.describeEnd(folder, 'QEMU', await lastOfLog(folder))

export const lastOfLog = async (folder: string): Promise<string> =>
  lastLines(await endOfLog(path.join(folder, files.log)), 5)
