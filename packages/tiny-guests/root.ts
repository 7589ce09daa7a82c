// The guest's root file system: programs from the packages, accounts, and the files that make it a machine.
import { appletsOf } from './applets.ts'
import { traits } from './architectures.ts'
import { copyWithLibraries } from './elf.ts'
import { bootScript, inittab, modulesScript } from './guest-boot.ts'
import {
  agentScript,
  dhcpScript,
  growScript,
  identityScript,
  lateScript,
  metadataScript,
  powerScript,
  shutdownScript,
} from './guest-late.ts'
import { type Guest, type GuestName, guests } from './images.ts'
import { addModules, type Kernel } from './kernel.ts'
import { Tree } from './tree.ts'

const admin = { uid: 1000, gid: 1000 }

/** The password of each account is its name. They are in the README, so the hash may be fast. */
const hashes = {
  root: '$6$rounds=1000$svc3tinyroot$zY5ODdqEbbSi/PeAbUdxJvfmTqoBCLdAPTYTPRu3Yb58cXBCPhznYgDK1pUrkVa7PVhebZpPjd1ceJU/r7bmH/',
  admin:
    '$6$rounds=1000$svc3tinyadmin$awkk7TvrQ8QrHCUVs79chebk3.k7leaLZbiBeAI6yu0Sdk80AL0nOtVLh/IfoM.txx5A7ins7LVVgPlS/VGoG.',
}

export function rootTree(name: GuestName, packages: Tree, kernel: Kernel): Tree {
  const guest = guests[name]
  const { triplet, serial, growsAtBoot } = traits[guest.architecture]
  const tree = new Tree()
  for (const name of ['bin', 'lib', 'lib64']) tree.folder(`usr/${name}`).link(name, `usr/${name}`)
  tree.link('sbin', 'usr/bin').link('usr/sbin', 'bin')
  const modules = `usr/lib/${triplet}/security/pam_permit.so`
  copyWithLibraries(
    packages,
    tree,
    [...guest.paths.flatMap((path) => filesAt(packages, path)), modules],
    [`usr/lib/${triplet}`, 'usr/lib', 'usr/lib64', 'usr/libexec/sudo'],
  )
  addLoader(packages, tree, triplet)
  addCertificates(packages, tree)
  const busybox = packages.get('usr/bin/busybox')
  if (busybox?.kind !== 'file') throw new Error('the package busybox-static has no busybox in it')
  for (const applet of appletsOf(busybox.data))
    if (!tree.has(`usr/bin/${applet}`)) tree.link(`usr/bin/${applet}`, 'busybox')
  addModules(tree, kernel, kernel.modules.keys())

  for (const name of ['proc', 'sys', 'dev', 'run', 'mnt', 'boot', 'var/log', 'var/lib/svc3', 'etc/dropbear'])
    tree.folder(name)
  tree.folder('tmp', 0o1777).folder('var/tmp', 0o1777).folder('root', 0o700).folder('home/admin', 0o755, admin)
  tree.link('var/run', '/run').link('etc/mtab', '/proc/self/mounts')
  addAccounts(tree, guest)
  addNames(tree, name, guest)

  tree.file('etc/inittab', inittab(serial))
  tree.script('etc/rc.boot', bootScript).script('etc/rc.modules', modulesScript).script('etc/rc.late', lateScript)
  tree.script('etc/rc.identity', identityScript).script('etc/rc.agent', agentScript)
  tree.script('etc/rc.metadata', metadataScript).script('etc/rc.shutdown', shutdownScript)
  tree.script('etc/acpi/PWRF/00000080', powerScript)
  tree.script('usr/share/udhcpc/default.script', dhcpScript)
  tree.script('usr/bin/grow-root', growScript)
  if (growsAtBoot) tree.file('etc/grow-at-boot', '')
  return tree
}

/** A folder that no package has is reported like a missing file. */
function filesAt(packages: Tree, path: string): string[] {
  const inside = path.endsWith('/') ? packages.under(path) : []
  return inside.length > 0 ? inside : [path]
}

/** Programs name the loader by its path, not in "needed". */
function addLoader(packages: Tree, tree: Tree, triplet: string): void {
  for (const [path] of packages.sorted())
    if (/^usr\/lib(64)?\/ld-linux-[^/]+$/.test(path)) copyWithLibraries(packages, tree, [path], [`usr/lib/${triplet}`])
}

/** One file with all certificates, where programs look for it. Debian generates it at installation. */
function addCertificates(packages: Tree, tree: Tree): void {
  const texts = packages.under('usr/share/ca-certificates/').flatMap((path) => {
    const entry = packages.get(path)
    return entry?.kind === 'file' ? [`${Buffer.from(entry.data).toString('latin1').trimEnd()}\n`] : []
  })
  if (texts.length > 0) tree.file('etc/ssl/certs/ca-certificates.crt', texts.join(''))
}

function addAccounts(tree: Tree, { shell }: Guest): void {
  const shadow = Object.entries(hashes).map(([name, hash]) => `${name}:${hash}:20000:0:99999:7:::\n`)
  tree
    .file('etc/passwd', `root:x:0:0:root:/root:${shell}\nadmin:x:1000:1000:admin:/home/admin:${shell}\n`)
    .file('etc/group', 'root:x:0:\ntty:x:5:\nadmin:x:1000:\n')
    .file('etc/shadow', shadow.join(''), 0o600)
    .file('etc/shells', [...new Set(['/bin/sh', shell])].map((path) => `${path}\n`).join(''))
    .file('etc/profile', 'export PATH=/usr/local/bin:/usr/bin\n[ -z "$BASH" ] || . /etc/bash.bashrc\n')
    .file(
      'etc/sudoers',
      'Defaults lecture=never, !pam_session, !use_pty\nDefaults secure_path=/usr/local/bin:/usr/bin\n' +
        'root ALL=(ALL:ALL) ALL\nadmin ALL=(ALL:ALL) NOPASSWD: ALL\n',
      0o440,
    )
  for (const service of ['sudo', 'other'])
    tree.file(
      `etc/pam.d/${service}`,
      ['auth', 'account', 'session'].map((kind) => `${kind} required pam_permit.so\n`).join(''),
    )
}

function addNames(tree: Tree, name: GuestName, { kind, architecture }: Guest): void {
  tree
    .file('etc/hostname', `${name}\n`)
    .file('etc/hosts', `127.0.0.1 localhost\n127.0.1.1 ${name}\n`)
    .file('etc/resolv.conf', 'nameserver 10.0.2.3\n')
    .file('etc/nsswitch.conf', 'passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n')
    .file('etc/issue', `svc3 ${kind} Linux on \\n (\\l). Log in as admin, password admin.\n\n`)
    .file(
      'etc/os-release',
      `ID=svc3-${kind}\nID_LIKE=debian\nNAME="svc3 ${kind}"\nPRETTY_NAME="svc3 ${kind} (${architecture})"\n`,
    )
}
