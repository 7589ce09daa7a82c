// The images, as a table: Debian packages, and the files of them on the disk. All boot alike.
import { type Architecture, architectures } from './architectures.ts'

interface Contents {
  /** Installed with their libraries; other dependencies (perl, python, debconf) are omitted. */
  readonly packages: readonly string[]
  /** Files with their libraries, and whole folders, which end in a slash. Paths of a merged /usr. */
  readonly paths: readonly string[]
  /** For people who log in. Scripts have /bin/sh, which is busybox. */
  readonly shell: string
}

const tiny = {
  packages: [
    'busybox-static', 'dropbear-bin', 'openssh-sftp-server', 'e2fsprogs', 'fdisk', 'util-linux', 'cloud-guest-utils',
    'sudo',
  ], // biome-ignore format: a list to read
  paths: [
    'usr/bin/busybox',
    'usr/bin/dropbear',
    'usr/bin/dropbearkey',
    'usr/lib/openssh/sftp-server',
    'usr/lib/sftp-server',
    'usr/bin/resize2fs',
    'usr/bin/e2fsck',
    'usr/bin/mke2fs',
    'usr/bin/mkfs.ext4',
    'usr/bin/tune2fs',
    'usr/bin/sfdisk',
    'usr/bin/fdisk',
    'usr/bin/flock',
    'usr/bin/partx',
    'usr/bin/lsblk',
    'usr/bin/growpart',
    'usr/bin/sudo',
    'usr/libexec/sudo/sudoers.so',
  ],
  shell: '/bin/sh',
} as const satisfies Contents

/** What CI jobs expect. */
const small = {
  packages: [
    ...tiny.packages,
    'bash', 'ncurses-base', 'libc-bin', 'openssh-client', 'rsync', 'curl', 'ca-certificates', 'git',
  ], // biome-ignore format: a list to read
  paths: [
    ...tiny.paths,
    'usr/bin/bash',
    'etc/bash.bashrc',
    'usr/lib/terminfo/',
    'usr/lib/locale/C.utf8/',
    'usr/bin/ssh',
    'usr/bin/scp',
    'usr/bin/sftp',
    'usr/bin/ssh-add',
    'usr/bin/ssh-agent',
    'usr/bin/ssh-keygen',
    'usr/bin/ssh-keyscan',
    'etc/ssh/ssh_config',
    'usr/bin/rsync',
    'usr/bin/curl',
    'usr/bin/git',
    'usr/bin/git-receive-pack',
    'usr/bin/git-upload-archive',
    'usr/bin/git-upload-pack',
    'usr/lib/git-core/',
    'usr/share/git-core/templates/',
  ],
  shell: '/bin/bash',
} as const satisfies Contents

const kinds = { tiny, small } as const satisfies Record<string, Contents>
type Kind = keyof typeof kinds

export interface Guest extends Contents {
  readonly kind: Kind
  readonly architecture: Architecture
}

/** For example tiny-amd64. */
export type GuestName = `${Kind}-${Architecture}`

const names = Object.keys(kinds) as Kind[]
export const guests = Object.fromEntries(
  names.flatMap((kind) =>
    architectures.map((architecture) => [`${kind}-${architecture}`, { kind, architecture, ...kinds[kind] }]),
  ),
) as Record<string, Guest> as Readonly<Record<GuestName, Guest>>
