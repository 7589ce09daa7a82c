// Checks whether a guest image has what a runner needs: a first-boot script that reports on the console, and the
// meaning of its lines.

interface Expected {
  readonly folder: string
  /** Undefined: root. */
  readonly user?: string | undefined
  /** The GitHub host, whose name the guest must resolve. */
  readonly host: string
}

export interface ImageFinding {
  readonly check: string
  readonly ok: boolean
  readonly message: string
  readonly advice?: string
}

const mark = 'svc3-check'
const allowedClockMs = 5 * 60_000

const lookUp = (host: string): string => `if command -v getent > /dev/null 2>&1; then is name getent hosts ${host}
elif command -v nslookup > /dev/null 2>&1; then is name nslookup ${host}
fi
`

/** Changes nothing in the guest, and powers it off with the command that a runner VM uses after its job. */
export const checkScript = ({ folder, user = 'root', host }: Expected): string => `#!/bin/sh
say() { echo "${mark} $*" > /dev/console; }
is() { name=$1; shift; if "$@" > /dev/null 2>&1; then say "$name" yes; else say "$name" no; fi; }
is folder test -d ${folder}
is start test -x ${folder}/run.sh
is listener test -x ${folder}/bin/Runner.Listener
is user id ${user}
is su command -v su
is poweroff sh -c 'command -v poweroff || command -v shutdown'
${/^[\d.]+$|:/.test(host) ? '' : lookUp(host)}say clock "$(date +%s)"
say end
poweroff 2>/dev/null || shutdown -h now 2>/dev/null || /sbin/poweroff -f
`

export const isCheckOver = (console: string): boolean => new RegExp(`${mark} end\\s*$`, 'm').test(console)

/** Returns undefined if the guest did not report. */
export function imageFindings(console: string, expected: Expected, nowMs: number): ImageFinding[] | undefined {
  const said = new Map([...console.matchAll(new RegExp(`${mark} (\\w+) (\\w+)\\s*$`, 'gm'))].map(([, key = '', value = '']) => [key, value])) // biome-ignore format: one line
  if (!isCheckOver(console)) return undefined
  const { folder, user, host } = expected
  const aheadMs = Number(said.get('clock')) * 1_000 - nowMs
  const wrong: readonly (readonly [isWrong: boolean, message: string, advice: string])[] = [
    [said.get('folder') !== 'yes', `Folder ${folder} is missing`, 'Put the runner there, or set --runner-folder'],
    [
      said.get('folder') === 'yes' && said.get('start') === 'no',
      `${folder}/run.sh is missing or not executable`,
      'Unpack the runner there: tar xzf actions-runner-*.tar.gz',
    ],
    [
      said.get('start') === 'yes' && said.get('listener') === 'no',
      `${folder}/bin/Runner.Listener is missing or not executable`,
      'Unpack the whole runner, for the system and architecture of the guest',
    ],
    [user !== undefined && said.get('user') === 'no', `User ${user} is missing`, 'Create the user, or set --user'],
    [user !== undefined && said.get('su') === 'no', 'The program su is missing', 'Install su, or remove --user'],
    [said.get('poweroff') === 'no', 'Neither poweroff nor shutdown found', 'Install one of them'],
    [
      said.get('name') === 'no',
      `The guest does not find ${host}`,
      'Check the network and DNS of the nodes and the guest',
    ],
    [
      Math.abs(aheadMs) > allowedClockMs,
      `The clock of the guest is ${Math.round(Math.abs(aheadMs) / 60_000)} min ${aheadMs > 0 ? 'ahead' : 'behind'}`,
      'Set the time in the guest: GitHub refuses runners that are 5 min off',
    ],
  ]
  const found = wrong.filter(([isWrong]) => isWrong).map(([, message, advice]) => ({ check: 'Image', ok: false, message, advice })) // biome-ignore format: one line
  return found.length > 0
    ? found
    : [{ check: 'Image', ok: true, message: `First-boot script ran; ${folder} has the runner` }]
}
