// Boots the guest up to SSH: /init of the first RAM disk, and what init runs first. Each process costs an emulated
// processor some 10 ms, so there are few.

/** Loads the modules of the disk, finds it by its label, and switches to it. */
export const initScript = (modules: readonly string[]): string => `#!/bin/busybox sh
export PATH=/bin
B=/bin/busybox
$B mount -t devtmpfs dev /dev; $B mount -t proc proc /proc; $B mount -t sysfs sys /sys
$B modprobe -qa ${modules.join(' ')}
label=LABEL=tiny-root
for word in $($B cat /proc/cmdline); do case $word in root=*) label=\${word#root=};; esac; done
# The virtio disk is there at once. Others are looked for by what the machine has, again and again while they wake up.
tries=0
until case $label in LABEL=*|UUID=*) root=$($B findfs $label 2>/dev/null);; *) root=$label; [ -b $root ];; esac; do
  [ $tries -ge 100 ] && { echo "svc3: no disk with $label; a shell instead"; exec $B sh; }
  [ $tries -gt 0 ] && $B usleep 100000
  $B find /sys/devices -name modalias -exec $B cat {} + | $B sort -u | $B xargs $B modprobe -qa
  tries=$((tries+1))
done
$B mount -t ext4 -o rw,noatime $root /mnt || { echo "svc3: cannot mount $root; a shell instead"; exec $B sh; }
$B mount --move /dev /mnt/dev; $B mount --move /proc /mnt/proc; $B mount --move /sys /mnt/sys
exec $B switch_root /mnt /sbin/init
`

export const inittab = (serial: string): string => `::sysinit:/etc/rc.boot
${serial}::respawn:/sbin/getty -L 115200 ${serial} vt100
tty1::respawn:/sbin/getty 38400 tty1 linux
::ctrlaltdel:/sbin/reboot
::shutdown:/etc/rc.shutdown
`

/** Everything up to "SSH is up", with as few processes as possible. The rest is in rc.late. */
export const bootScript = `#!/bin/sh
export PATH=/usr/bin
mkdir /dev/pts; mount -t devpts -o mode=620,gid=5 devpts /dev/pts; mount -t tmpfs -o mode=755 run /run; mount -t tmpfs -o mode=1777 tmp /tmp
read name < /etc/hostname; hostname $name

# Without virtio there is a network card that nobody has loaded a module for. Cards are counted in the order of their
# places on the bus, whatever the order of their drivers: the first is the network, the second is the metadata.
places=; cards=0; drivers=0
for class in /sys/bus/pci/devices/*/class; do
  read code < $class; case $code in 0x0200*) places="$places \${class%/class}"; cards=$((cards+1));; esac
done
for card in /sys/class/net/eth*; do [ -e $card ] && drivers=$((drivers+1)); done
if [ $cards -gt $drivers ]; then
  /etc/rc.modules
  number=0; for place in $places; do for card in $place/net/* $place/virtio*/net/*; do
    [ -e $card ] && ip link set \${card##*/} name card$number && number=$((number+1))
  done; done
  while [ $number -gt 0 ]; do number=$((number-1)); ip link set card$number name eth$number; done
fi
# The address that QEMU's own network gives, at once; DHCP may correct it later.
ifconfig lo 127.0.0.1; ifconfig eth0 10.0.2.15 netmask 255.255.255.0 && route add default gw 10.0.2.2
[ -e /sys/class/net/eth1 ] && ifconfig eth1 169.254.169.15 netmask 255.255.255.0

# Before SSH: whoever sees the machine up may press its power button.
acpid -c /etc/acpi -l /dev/null
# -R: each machine makes its own host key with the first connection; ed25519 takes 0.05 s even when emulated.
dropbear -R -W 1048576 -p 22 -P /run/dropbear.pid
read up rest < /proc/uptime
echo "svc3: SSH is up on port 22, $up s after the kernel's start" | tee /dev/tty1 > /dev/console
setsid /etc/rc.late </dev/null >/run/rc.late.log 2>&1 &
`

/** Loads the modules of all devices. */
export const modulesScript = `#!/bin/sh
find /sys/devices -name modalias -exec cat {} + | sort -u | xargs modprobe -qa
exit 0
`
