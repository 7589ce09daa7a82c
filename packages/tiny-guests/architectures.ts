// What differs between the architectures.
export const architectures = ['amd64', 'arm64'] as const
export type Architecture = (typeof architectures)[number]

interface Traits {
  /** The folder name of Debian's libraries. */
  readonly triplet: string
  readonly serial: string
  /** Kernel options beyond the common ones. */
  readonly options: readonly string[]
  /** Users of amd64 VMs grow the partition by SSH; arm64 VMs need nothing else. */
  readonly growsAtBoot: boolean
  /** Debian's GRUB, and the file name that firmware looks for. */
  readonly efi: { readonly grub: string; readonly name: string }
}

export const traits = {
  amd64: {
    triplet: 'x86_64-linux-gnu',
    serial: 'ttyS0',
    options: ['tsc=reliable', 'no_timer_check', 'noreplace-smp'],
    growsAtBoot: false,
    efi: { grub: 'usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed', name: 'BOOTX64.EFI' },
  },
  arm64: {
    triplet: 'aarch64-linux-gnu',
    serial: 'ttyAMA0',
    options: [],
    growsAtBoot: true,
    efi: { grub: 'usr/lib/grub/arm64-efi-signed/grubaa64.efi.signed', name: 'BOOTAA64.EFI' },
  },
} as const satisfies Record<Architecture, Traits>

export const rootLabel = 'tiny-root'

/** For emulated processors: what is slow there and useless in a guest that lives for a test is off. */
const options = [
  `root=LABEL=${rootLabel}`,
  'mitigations=off',
  'nokaslr',
  'norandmaps',
  'cryptomgr.notests',
  'audit=0',
  'lsm=',
  'init_on_alloc=0',
  'hardened_usercopy=off',
  'random.trust_cpu=on',
  'random.trust_bootloader=on',
  'rcupdate.rcu_expedited=1',
  'nowatchdog',
  'initcall_blacklist=init_kprobe_trace,load_system_certificate_list,crypto_kdf108_init,init_encrypted,init_ima',
]

/** Programs write to the last console: the serial line, which the service keeps as the VM's log. */
export const commandLine = (architecture: Architecture): string =>
  [...options, ...traits[architecture].options, 'console=tty0', `console=${traits[architecture].serial}`].join(' ')
