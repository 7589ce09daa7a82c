// The shell that runs beside each QEMU and records its exit code, and the marks by which a restarted agent finds both.
import path from 'node:path'
import { childEnvironment } from '../../platform/exec.ts'
import { spawnSupervised, supervision } from '../supervised.ts'
import { files, type QemuRun } from './control/run.ts'
import { networkPlaces, sealedName } from './network/network.ts'

/**
 * The script is constant; its input comes as arguments. Core dumps are off because they contain a guest's memory. If
 * the host runs out of memory, a VM is killed rather than the agent. Only QEMU holds the FIFO open, so the VM's uplink
 * notices when QEMU ends. After the uplink, the folder of sockets is removed, because no agent may return to do so.
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

/** `memory` is a file of saved guest memory, which QEMU finds open as descriptor 3. */
export const spawnQemu = (folder: string, runtime: string, command: readonly string[], memory?: string) =>
  spawnSupervised(folder, {
    script: supervisor,
    name: supervisorName,
    words: [networkPlaces(runtime).life, ...command],
    env: childEnvironment,
    log: files.log,
    input: memory,
  })

export const { isOfThisBoot, findProcess, findRunning, waitForSupervisor, describeEnd, lastOfLog } =
  supervision<QemuRun>({
    program: 'QEMU',
    log: files.log,
    marksOf: ({ runtime }) => ({
      text: runtime,
      isProgram: ([program = '']) => path.basename(program).startsWith('qemu-system-'),
      // The second name is of the shell that isolates the network of a VM and then executes QEMU.
      isForerunner: (words) => words.includes(supervisorName) || words.includes(sealedName),
      isSupervisor: (words) => words.includes(supervisorName) && words.includes(networkPlaces(runtime).life),
    }),
  })
