// What the guest does once SSH is up, and how it goes down.

export const lateScript = `#!/bin/sh
export PATH=/usr/bin
# From here on the consoles are for people: only errors interrupt them. The rest is in dmesg.
echo 4 > /proc/sys/kernel/printk; echo 0 > /proc/sys/kernel/dmesg_restrict
[ -e /sys/class/net/eth1 ] && /etc/rc.metadata & metadata=$!
[ -e /etc/grow-at-boot ] && grow-root
/etc/rc.modules
setsid /etc/rc.resumed </dev/null >/run/rc.resumed.log 2>&1 &
[ -e /sys/class/virtio-ports ] && setsid /etc/rc.agent </dev/null >/run/rc.agent.log 2>&1 &
mkdir -p /dev/shm; mount -t tmpfs -o mode=1777 shm /dev/shm
udhcpc -i eth0 -b -S -t 3 -T 1 -s /usr/share/udhcpc/default.script -p /run/udhcpc.pid
wait $metadata
read up rest < /proc/uptime
echo "rc.late: done, $up s after the kernel's start"
`

/**
 * Who this machine is, from the metadata of this VM. With `resumed`, after it went on from the memory of another: then its
 * network cards and its clock are still those of the other. arp_notify: whoever knew the old address hears the new one.
 */
export const identityScript = `#!/bin/sh
read asked rest < /proc/uptime
answer=$(timeout 10 wget -qO- http://169.254.169.254/svc3/identity 2>/dev/null) || exit 1
read told rest < /proc/uptime
# The time was told halfway between two looks at the clock that never jumps, in hundredths of a second. The system's clock
# is set at its next full second.
hundredths() { echo $((\${1%.*} * 100 + 1\${1#*.} - 100)); }
set_clock() {
  case $2 in *[!0-9]*|'') part=0 ;; *) part=$(((1$2 - 1000000000) / 10000000)) ;; esac
  read now rest < /proc/uptime
  part=$((part + $(hundredths $now) - ($(hundredths $asked) + $(hundredths $told)) / 2))
  usleep $(((100 - part % 100) * 10000))
  date -s @$(($1 + part / 100 + 1)) > /dev/null
}
[ "$1" = resumed ] && echo 1 > /proc/sys/net/ipv4/conf/all/arp_notify
echo "$answer" | while read -r key value rest; do
  case $key in
    hostname) case $value in
      ''|*[!a-zA-Z0-9.-]*) ;;
      *) hostname "$value"; echo "$value" > /etc/hostname; printf '127.0.0.1 localhost\\n127.0.1.1 %s\\n' "$value" > /etc/hosts ;;
    esac ;;
    mac0|mac1) [ "$1" = resumed ] && ip link set eth\${key#mac} address $value ;;
    time) [ "$1" = resumed ] && set_clock $value $rest ;;
  esac
done
# Two machines of one memory would have the same random numbers.
[ "$1" = resumed ] && [ -e /dev/hwrng ] && head -c 64 /dev/hwrng > /dev/urandom
exit 0
`

/** Looks twice a second whether it is still the same VM: the hypervisor says which. No process is started for a look. */
export const resumedScript = `#!/bin/sh
id=/sys/firmware/qemu_fw_cfg/by_name/opt/svc3/instance/raw
[ -e $id ] || exit 0
umask 077
mkfifo /run/resumed; exec 3<> /run/resumed
read -r known < $id
while :; do
  read -r -t 0.5 never <&3
  read -r now < $id
  [ "$now" = "$known" ] || { /etc/rc.identity resumed && known=$now && read up rest < /proc/uptime && echo "rc.resumed: $now, at $up"; }
done
`

/**
 * As much of QEMU's guest agent as the host needs before it captures the disk: what was written goes there. Nothing is frozen.
 * While nobody is at the other end, a read ends at once: then it waits a moment. Only a flush starts a process.
 */
export const agentScript = `#!/bin/sh
umask 077
mkfifo /run/agent; exec 4<> /run/agent
pause() { read -r -t 0.2 never <&4; }
# The port gets its name a moment after its driver is there.
port=; tries=0
until [ -n "$port" ]; do
  for place in /sys/class/virtio-ports/*; do
    name=; read -r name < $place/name
    [ "$name" = org.qemu.guest_agent.0 ] && port=/dev/\${place##*/}
  done 2>/dev/null
  [ $((tries+=1)) -gt 50 ] && exit 0
  [ -n "$port" ] || pause
done
exec 3<> $port || exit 1
while :; do
  read -r line <&3 || { pause; continue; }
  name=\${line#*'"execute"'}; name=\${name#*'"'}; name=\${name%%'"'*}
  id=\${line##*'"id"'}; id=\${id#*:}; id=\${id# }; id=\${id%%[!0-9]*}
  case $name in
    guest-sync) printf '{"return": %s}\\n' "\${id:-0}" ;;
    guest-sync-delimited) printf '\\377{"return": %s}\\n' "\${id:-0}" ;;
    guest-ping) echo '{"return": {}}' ;;
    guest-fsfreeze-freeze) sync; echo '{"return": 1}' ;;
    guest-fsfreeze-thaw) echo '{"return": 0}' ;;
    *) echo '{"error": {"class": "CommandNotFound", "desc": "this guest only flushes its disks"}}' ;;
  esac >&3
done
`

/** Its name and, on its first boot, a script: from the metadata of this VM, if it has any. Time limits are those of
 *  `timeout`: Debian 12's static busybox crashes on `wget -T`. */
export const metadataScript = `#!/bin/sh
from=http://169.254.169.254
/etc/rc.identity

# Once: the mark is on disk before the script runs, so that neither a reboot nor a crash runs it again.
mark=/var/lib/svc3/first-boot
[ -e $mark ] && exit 0
umask 077
script=/var/lib/svc3/userdata
for try in 1 2 3; do
  answer=$(timeout 10 wget -S -O $script.new $from/userdata 2>&1)
  case $answer in *'HTTP/1.'?' 200'*) mv $script.new $script; break ;; *'HTTP/1.'?' 4'*) break ;; esac
  sleep 1
done
rm -f $script.new
: > $mark
sync
[ -s $script ] || exit 0
setsid /bin/sh $script </dev/null >>/var/log/userdata.log 2>&1 &
`

/** Partition and file system up to the end of the disk, if there is anything to gain. */
export const growScript = `#!/bin/sh
# grow-root: lets the root file system have the whole disk. The same by hand: growpart /dev/vda 1 && resize2fs /dev/vda1
root=$(findfs LABEL=tiny-root) || exit 1
partition=\${root##*/}
disk=$(readlink -f /sys/class/block/$partition/..); disk=\${disk##*/}
read number < /sys/class/block/$partition/partition
read start < /sys/class/block/$partition/start
read size < /sys/class/block/$partition/size
read whole < /sys/class/block/$disk/size
# In sectors. The last MiB belongs to the partition table's copy.
[ $((whole - start - size)) -gt 4096 ] && growpart /dev/$disk $number
resize2fs $root && read up rest < /proc/uptime && echo "grow-root: done, $up s after the kernel's start"
`

export const dhcpScript = `#!/bin/sh
case $1 in bound|renew) ;; *) exit 0 ;; esac
# An address that is right already stays: setting it again would cut connections.
ifconfig $interface | grep -q "addr:$ip " || ifconfig $interface $ip netmask $subnet
[ -n "$router" ] && { route del default 2>/dev/null; route add default gw \${router%% *}; }
[ -n "$dns" ] && for server in $dns; do echo nameserver $server; done > /etc/resolv.conf
`

/** The power button. Not by init, which waits for two seconds: ask all to end, then sync, read-only, off. */
export const powerScript = `#!/bin/sh
echo 'svc3: power button, going down' > /dev/console
trap '' TERM HUP
kill -TERM -1; usleep 200000; kill -KILL -1
sync
mount -o remount,ro / 2>/dev/null || sync
exec poweroff -f
`

export const shutdownScript = `#!/bin/sh
sync; umount -a -r 2>/dev/null; mount -o remount,ro / 2>/dev/null; sync
`
