// A host with a real systemd as its first process, in namespaces over a temporary copy of this machine's files. Nothing
// inside affects this machine, except that the network is shared. Root only.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { exec } from '../../../src/platform/exec.ts'
import { findByArgument } from '../../../src/platform/processes.ts'
import { eventually } from '../tools/eventually.ts'
import type { TestHost } from './hosts.ts'

/** Masked: useless for a service, and some units would clean up folders. */
const masked = [
  ...['systemd-tmpfiles-setup.service', 'systemd-tmpfiles-clean.timer', 'systemd-tmpfiles-setup-dev.service'],
  ...['systemd-udevd.service', 'systemd-udev-trigger.service', 'systemd-networkd.service', 'systemd-resolved.service'],
  ...['systemd-timesyncd.service', 'systemd-logind.service', 'systemd-remount-fs.service', 'systemd-sysctl.service'],
  ...['systemd-modules-load.service', 'systemd-binfmt.service', 'getty.target', 'apt-daily.timer', 'fstrim.timer'],
  ...['dpkg-db-backup.timer', 'e2scrub_all.timer', 'dev-hugepages.mount', 'dev-mqueue.mount'],
  ...['sys-kernel-debug.mount', 'sys-kernel-tracing.mount', 'proc-sys-fs-binfmt_misc.automount'],
]

/** $1: a folder, $2: an id, $3: the next step. First creates a control group that is the root inside. */
const enclose = `set -e
mount --make-rprivate /
mount -t cgroup2 cgroup2 "$1"
mkdir "$1/svc3-$2"
echo $$ > "$1/svc3-$2/cgroup.procs"
umount "$1"
exec unshare --pid --fork --mount --uts --ipc --cgroup --kill-child sh -c "$3" svc3-boot "$1" "$2"`
const forget = `mount --make-rprivate /
mount -t cgroup2 cgroup2 "$1" && find "$1/svc3-$2" -depth -type d -exec rmdir {} +`

/** $1 and $2 as above. The first failure ends it before systemd starts. */
const boot = `set -e
mount --make-rprivate /
mount -t tmpfs tmpfs "$1"
mkdir "$1/up" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/up,workdir=$1/work" "$1/root"
cd "$1/root"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount --rbind /dev dev
for place in run tmp dev/net sys/fs/cgroup; do mount -t tmpfs tmpfs "$place"; done
mount -t cgroup2 cgroup2 sys/fs/cgroup
mknod -m 666 dev/net/tun c 10 200
: > etc/machine-id
rm -rf etc/systemd/system
mkdir etc/systemd/system
for unit in ${masked.join(' ')}; do ln -s /dev/null "etc/systemd/system/$unit"; done
mkdir -p mnt/old
pivot_root . mnt/old
cd /
umount -l /mnt/old
# What systemd mounts for a service (credentials) has to reach it.
mount --make-rshared /
exec env -i container=svc3-test PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \\
  /lib/systemd/systemd --system --unit=multi-user.target "--machine-id=$2"`

const environment = [
  '/usr/bin/env',
  '-i',
  'HOME=/root',
  'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
]

export interface SystemdHost extends AsyncDisposable {
  /** Runs a shell script inside as root and returns its output. */
  run(script: string, input?: string | Uint8Array): Promise<string>
}

/** With the network of that host, or this machine's. */
export async function startSystemd(on: Pick<TestHost, 'spawn'> = { spawn }): Promise<SystemdHost> {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'svc3-systemd-'))
  // Identifies the first process inside from outside.
  const id = crypto.randomUUID().replaceAll('-', '')
  const words = ['--mount', 'sh', '-c', enclose, 'svc3-enclose', folder, id, boot]
  const outer: ChildProcess = on.spawn('unshare', words, { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  outer.stderr?.on('data', (chunk) => (said += chunk))
  const first = async (): Promise<number> => {
    for (const pid of await findByArgument(`--machine-id=${id}`)) return pid
    throw new Error(`systemd does not run: ${said.slice(-1_000)}`)
  }
  const run: SystemdHost['run'] = async (script, input) => {
    const inside = [
      '-t',
      String(await first()),
      '--mount',
      '--net',
      '--pid',
      '--uts',
      '--ipc',
      '--cgroup',
      '--root',
      '--wd',
    ]
    const options = { timeoutMs: 150_000, ...(input !== undefined && { input }) }
    return (await exec('nsenter', [...inside, ...environment, '/bin/sh', '-ec', script], options)).stdout
  }
  const host: SystemdHost = {
    run,
    [Symbol.asyncDispose]: async () => {
      // The end of its first process ends all of them.
      outer.kill('SIGKILL')
      if (outer.exitCode === null && outer.signalCode === null) await once(outer, 'exit')
      await eventually(() =>
        exec('unshare', ['--mount', 'sh', '-c', forget, 'svc3-forget', folder, id]).then(() => undefined),
      )
      await fs.rm(folder, { recursive: true, force: true })
    },
  }
  await eventually(async () => {
    const state = await run('systemctl is-system-running || true')
    if (!/^(running|degraded)$/.test(state.trim())) throw new Error(`systemd is ${state.trim()}: ${said.slice(-1_000)}`)
  }, 120_000)
  return host
}
