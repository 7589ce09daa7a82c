// Grows the partition and the file system of a guest's root. The scripts are POSIX shell without single quotes, because they are
// passed in such quotes, and print a line with sizes in KiB: before, after, disk.
import { reasonOf } from '../platform/reason.ts'

export const systemScript = 'echo svc3-system $(uname -s) $(id -u)'

/** Finds the root's partition by its device number, because names such as /dev/root do not exist as files. */
const linux = `
set -e
export LC_ALL=C PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
size() { set -- $(df -Pk / | tail -n 1); echo "$2"; }
number= type=
while read -r _ _ device _ mount rest; do
  if [ "$mount" = / ]; then number=$device; type=\${rest#* - }; type=\${type%% *}; fi
done < /proc/self/mountinfo
node=$(readlink -f "/sys/dev/block/$number")
[ -d "$node" ] || { echo "the root file system is on no disk ($type)" >&2; exit 1; }
part=\${node##*/}
disk=$part
before=$(size)
if [ -e "$node/partition" ]; then
  disk=\${node%/*}; disk=\${disk##*/}
  index=$(cat "$node/partition")
  if command -v growpart > /dev/null; then
    growpart "/dev/$disk" "$index" >&2 || [ $? = 1 ]
  else
    echo ", +" | sfdisk --no-reread --force -N "$index" "/dev/$disk" >&2
    partx -u "/dev/$disk" >&2
  fi
fi
case $type in
  ext2|ext3|ext4) resize2fs "/dev/$part" >&2 ;;
  xfs) xfs_growfs / >&2 ;;
  btrfs) btrfs filesystem resize max / >&2 ;;
  *) echo "a file system of type $type is not known" >&2; exit 1 ;;
esac
echo svc3-sizes "$before" "$(size)" "$(($(cat "/sys/block/$disk/size") / 2))"
`

const macos = `
set -e
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
size() { set -- $(df -Pk / | tail -n 1); echo "$2"; }
store=$(diskutil info / | sed -n "s/.*APFS Physical Store: *//p")
[ -n "$store" ] || { echo "the root file system is not APFS" >&2; exit 1; }
disk=$(echo "$store" | sed "s/s[0-9]*$//")
before=$(size)
echo y | diskutil repairDisk "$disk" >&2 || true
diskutil apfs resizeContainer "$store" 0 >&2
bytes=$(diskutil info "$disk" | sed -n "s/.*Disk Size:.*(\\([0-9]*\\) Bytes).*/\\1/p")
echo svc3-sizes "$before" "$(size)" "$((\${bytes:-0} / 1024))"
`

export const growScript = { Linux: linux, Darwin: macos } as const

/** Grows them through an agent in the guest, which needs no login. Returns a warning with manual instructions after a failure. */
export async function growInside(
  shell: (script: string) => Promise<string>,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const { name } = parseSystem(await shell(systemScript))
    const problem = problemWith(parseSizes(await shell(growScript[name])))
    return problem === undefined ? undefined : manualGrowth(problem)
  } catch (error) {
    signal.throwIfAborted()
    return manualGrowth(reasonOf(error))
  }
}

interface System {
  readonly name: keyof typeof growScript
  readonly isRoot: boolean
}

export function parseSystem(output: string): System {
  const [, name, user] = /svc3-system (\S+) (\d+)/.exec(output) ?? []
  if (name === 'Linux' || name === 'Darwin') return { name, isRoot: user === '0' }
  throw new Error(`unknown guest system (${name ?? 'no answer'})`)
}

interface Sizes {
  readonly beforeKb: number
  readonly afterKb: number
  readonly diskKb: number
}

export function parseSizes(output: string): Sizes {
  const match = /svc3-sizes (\d+) (\d+) (\d+)/.exec(output)
  if (!match) throw new Error(`the guest did not report the size of its file system: ${lastLines(output)}`)
  return { beforeKb: Number(match[1]), afterKb: Number(match[2]), diskKb: Number(match[3]) }
}

/** Accepts a file system that has its full size already, because some guests grow it at boot. */
export function problemWith({ beforeKb, afterKb, diskKb }: Sizes): string | undefined {
  if (afterKb > beforeKb || afterKb > 0.8 * diskKb) return undefined
  return `the file system has ${afterKb} KiB as before, of a disk of ${diskKb} KiB`
}

export const lastLines = (text: string): string => text.trim().split('\n').slice(-4).join('; ').slice(0, 600)

export const manualGrowth = (why: string): string =>
  `The disk has grown, but its partition and file system have not: ${why}. Grow them in the guest: on macOS with ` +
  '"diskutil repairDisk disk0", then "diskutil apfs resizeContainer disk0s2 0"; on Linux with "growpart /dev/vda 1", ' +
  'then "resize2fs /dev/vda1" or "xfs_growfs /" (names as "diskutil list" or "lsblk" show them)'
