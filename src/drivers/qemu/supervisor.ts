// The supervisor beside a QEMU, which records how it ended; and how a restarted agent finds both.
import path from 'node:path'
import { childEnvironment } from '../../platform/exec.ts'
import { spawnSupervised, supervision } from '../supervised.ts'
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
export const spawnQemu = (folder: string, runtime: string, command: readonly string[], memory?: string) =>
  spawnSupervised(folder, {
    script: supervisor,
    name: supervisorName,
    words: [networkPlaces(runtime).life, ...command],
    env: childEnvironment,
    log: files.log,
    input: memory,
  })

export const { isOfThisBoot, findProcess, waitForSupervisor, describeEnd, lastOfLog } = supervision<QemuRun>({
  program: 'QEMU',
  log: files.log,
  marksOf: ({ runtime }) => ({
    text: runtime,
    isProgram: ([program = '']) => path.basename(program).startsWith('qemu-system-'),
    // The program that seals, before it becomes QEMU.
    isForerunner: (words) => words.includes(supervisorName) || words.includes(sealedName),
    isSupervisor: (words) => words.includes(supervisorName) && words.includes(networkPlaces(runtime).life),
  }),
})
