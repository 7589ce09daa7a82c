// Scripts that grow the root file system in a guest. They are POSIX shell without single quotes, because they are passed in
// such quotes, and print a line with sizes in KiB: before, after, disk.

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
