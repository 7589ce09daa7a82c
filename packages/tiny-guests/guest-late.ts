// What the guest does after SSH is up, and how it shuts down.

export const lateScript = `#!/bin/sh
export PATH=/usr/bin
# From here on the consoles are for people: only errors interrupt them. The rest is in dmesg.
echo 4 > /proc/sys/kernel/printk; echo 0 > /proc/sys/kernel/dmesg_restrict
# First: whoever is saved before it listens cannot be told who it is.
modprobe -q virtio_console && setsid /etc/rc.agent </dev/null >/run/rc.agent.log 2>&1 &
[ -e /sys/class/net/eth1 ] && /etc/rc.metadata & metadata=$!
[ -e /etc/grow-at-boot ] && grow-root
/etc/rc.modules
mkdir -p /dev/shm; mount -t tmpfs -o mode=1777 shm /dev/shm
udhcpc -i eth0 -b -S -t 3 -T 1 -s /usr/share/udhcpc/default.script -p /run/udhcpc.pid
wait $metadata
read up rest < /proc/uptime
echo "rc.late: done, $up s after the kernel's start"
`

const keepName = `keep_name() {
  echo "$1" > /etc/hostname; printf '127.0.0.1 localhost\\n127.0.1.1 %s\\n' "$1" > /etc/hosts
}
set_name() {
  case $1 in ''|*[!a-zA-Z0-9.-]*) return 1 ;; esac
  echo "$1" > /proc/sys/kernel/hostname
}`

/** Sets the identity of this machine from the VM's metadata when it boots. */
export const identityScript = `#!/bin/sh
${keepName}
answer=$(timeout 10 wget -qO- http://169.254.169.254/svc3/identity 2>/dev/null) || exit 1
echo "$answer" | while read -r key value rest; do
  [ "$key" = hostname ] && set_name "$value" && keep_name "$value"
done
`

/**
 * The part of QEMU's guest agent that the host needs. Before a capture of the disk it syncs; nothing is frozen. `guest-exec` runs
 * a script for `/bin/sh`, which comes as base64 input because nothing in a line may be escaped; its number is not a pid.
 * `svc3-identity` gives a guest that resumed from memory its new identity; the answer lists what it has set. Without a peer a
 * read ends at once, so the loop waits a moment.
 *
 * A deploy waits for that answer, and a guest that has just resumed runs this code for the first time, which is slow on an emulated
 * processor. So it starts few processes and does the rest after the answer: `date` sets the clock and writes the answer in one
 * process. A guest that waited in a pool has its addresses and clock already and answers without a process.
 */
export const agentScript = `#!/bin/sh
umask 077
${keepName}
# Of the line, which the host wrote: flat, and nothing in it is escaped.
field() { value=\${line#*"\\"$1\\":\\""}; [ "$value" = "$line" ] && value= || value=\${value%%'"'*}; }
add() { parts="$parts\${parts:+, }\\"$1\\""; }
identity() {
  read at rest < /proc/uptime
  parts=; own=
  field seed; echo "$value" > /dev/urandom
  field mac0; card eth0 && field mac1 && card eth1 && add network
  field hostname; set_name "$value" && add name && own=$value
  field time; second=\${value%.*}; part=\${value#*.}
  answered="{\\"return\\": [$parts]}"; add clock
  [ -n "$second" ] && passed && is_right && second= && answered="{\\"return\\": [$parts]}"
  [ -n "$second" ] && date -s @$((second + ms / 1000)) "+{\\"return\\": [$parts]}" || echo "$answered"
}
# The card has the address already, or gets it, and whoever knew the old one hears the new one.
card() {
  read -r has < /sys/class/net/$1/address; [ "$has" = "$value" ] && return
  echo 1 > /proc/sys/net/ipv4/conf/all/arp_notify
  ip link set $1 address $value
}
# The clock is at most 0.1 s behind, and ahead by no more than the line may have taken to come here.
is_right() {
  now=$EPOCHREALTIME; [ -n "$now" ] || return 1
  off=$((\${now%.*}\${now#*.} / 1000 - second * 1000 - ms))
  [ $off -gt -100 ] && [ $off -lt 400 ]
}
# Milliseconds since the full second that the host told.
passed() {
  read up rest < /proc/uptime
  ms=$((1$part - 1000 + (\${up%.*}\${up#*.} - \${at%.*}\${at#*.}) * 10))
}
# The clock takes whole seconds. It is behind by the rest until the next one begins, and then set once more; never back.
set_exactly() {
  passed; usleep $(((1000 - ms % 1000) * 1000))
  # Told again meanwhile, this time is an old one.
  read last < /run/identity; [ "$last" = "$at" ] && date -s @$((second + ms / 1000 + 1)) > /dev/null
}
execs=0
execute() {
  field path; [ "$value" = /bin/sh ] || { echo '{"error": {"class": "GenericError", "desc": "this guest executes /bin/sh, no more"}}'; return; }
  field input-data; result=/run/exec.$((execs+=1))
  { echo "$value" | base64 -d | /bin/sh; echo $? > $result.new; mv $result.new $result; } </dev/null >/dev/null 2>&1 3>&- 4>&- &
  echo "{\\"return\\": {\\"pid\\": $execs}}"
}
executed() {
  pid=\${line##*'"pid"'}; pid=\${pid#*:}; pid=\${pid# }; result=/run/exec.\${pid%%[!0-9]*}; code=
  [ -e $result ] && read -r code < $result && rm $result
  [ -n "$code" ] && echo "{\\"return\\": {\\"exited\\": true, \\"exitcode\\": $code}}" || echo '{"return": {"exited": false}}'
}
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
    guest-exec) execute ;;
    guest-exec-status) executed ;;
    svc3-identity) identity ;;
    *) echo '{"error": {"class": "CommandNotFound", "desc": "this guest flushes its disks, executes scripts and takes an identity, no more"}}' ;;
  esac >&3
  [ "$name" = svc3-identity ] && { echo "$at" > /run/identity; [ -n "$second" ] && { set_exactly & }; [ -n "$own" ] && keep_name "$own"; }
done
`

/**
 * Sets the name and, on the first boot, runs the script of the VM's metadata, if any. Time limits use `timeout`: Debian
 * 12's static busybox crashes on `wget -T`.
 */
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

/** Grows partition and file system to the end of the disk if there is space. */
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

/** The power button. init would wait for two seconds; this ends all processes, syncs, remounts read-only and powers off. */
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
