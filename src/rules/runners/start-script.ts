// The script that starts a runner, at first boot or by SSH. The runner is in the image, so nothing is downloaded. The
// configuration is in the environment of one process and in no argument. The VM powers off when the runner ends.

interface RunnerStart {
  readonly folder: string
  /** The user that runs the runner; undefined: the user that runs the script. */
  readonly user?: string | undefined
  /** The registration of this one runner. */
  readonly secret: string
}

/** Wraps a script so that it keeps running after the SSH connection is closed. */
export const detached = (script: string): string => `umask 077
d=$(mktemp -d /tmp/svc3.XXXXXX) || exit 1
cat > "$d/start" <<'svc3-end'
${script}
svc3-end
out=/dev/console
[ -w "$out" ] || out=/dev/null
run=sh
command -v setsid >/dev/null 2>&1 && run='setsid sh'
(trap '' HUP; exec $run "$d/start" > "$out" 2>&1 < /dev/null) &
`

const folderForm = /^\/[A-Za-z0-9._/-]{1,200}$/
export const isRunnerFolder = (folder: string): boolean => folderForm.test(folder) && !folder.includes('//')

const userForm = /^[a-z_][a-z0-9_-]{0,31}$/
export const isGuestUser = (user: string): boolean => userForm.test(user)

const secretForm = /^[A-Za-z0-9+/=_-]+$/

export function startScript({ folder, user, secret }: RunnerStart): string {
  if (!secretForm.test(secret)) throw new Error('the configuration of the runner is not base64')
  // `su` without a dash keeps the environment.
  const start = user === undefined ? './run.sh' : `su ${user} -c ./run.sh`
  return `#!/bin/sh
# Made by svc3 for one runner and one job.
umask 077
rm -f "$0" 2>/dev/null
finish() {
  sync
  # Late answers of the runner still have to leave.
  sleep 3
  poweroff 2>/dev/null || shutdown -h now 2>/dev/null || /sbin/poweroff -f
}
trap finish EXIT
if ! cd ${folder} || [ ! -x ./run.sh ]; then
  echo "svc3: no runner in ${folder}: expected run.sh" | tee /dev/console
  exit 1
fi
export ACTIONS_RUNNER_INPUT_JITCONFIG='${secret}'
export ACTIONS_RUNNER_RETURN_VERSION_DEPRECATED_EXIT_CODE=1
${user === undefined ? 'export RUNNER_ALLOW_RUNASROOT=1\n' : ''}${start}
echo "svc3: the runner ended with $?"
`
}
