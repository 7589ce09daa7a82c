// The expected state of a VM and its images: a pure function from a state and an act to the next state. Disks are bytes,
// followed by zeros up to their size.

export type Power = 'running' | 'stopped' | 'suspended' | 'failed'

export interface Disk {
  readonly bytes: Buffer
  readonly sizeGb: number
}

interface VmState {
  readonly power: Power
  readonly disk: Disk
}

/** A VM, the image that it is deployed from and commits to, and images saved of it. */
export interface State {
  readonly image: Disk
  readonly vm: VmState | undefined
  readonly saved: Readonly<Record<string, Disk>>
}

export interface Write {
  readonly offset: number
  readonly length: number
  /** Fills all of it. */
  readonly byte: number
}

export type Act =
  | { readonly name: 'deploy' | 'start' | 'stop' | 'suspend' | 'resume' | 'revert' | 'commit' | 'delete' }
  | { readonly name: 'resize'; readonly sizeGb: number }
  | { readonly name: 'save' | 'push' | 'delete image'; readonly image: string }
  /** The guest writes to its disk. */
  | { readonly name: 'write'; readonly writes: readonly Write[] }
  /** The VM's process is killed. */
  | { readonly name: 'crash' }

export type ActName = Act['name']

/** The acts that a VM accepts in each state; others are refused and change nothing. */
const taken: Readonly<Record<ActName, readonly (Power | 'absent')[]>> = {
  deploy: ['absent'],
  start: ['stopped', 'failed'],
  stop: ['running'],
  suspend: ['running'],
  resume: ['suspended'],
  revert: ['running', 'stopped', 'suspended', 'failed'],
  resize: ['running'],
  save: ['running'],
  commit: ['running'],
  push: ['running'],
  write: ['running', 'stopped'],
  crash: ['running', 'suspended'],
  delete: ['running', 'stopped', 'suspended', 'failed'],
  'delete image': ['absent', 'running', 'stopped', 'suspended', 'failed'],
}

export const isTaken = ({ vm }: State, name: ActName): boolean => taken[name].includes(vm?.power ?? 'absent')

const running = (vm: VmState, disk = vm.disk): VmState => ({ power: 'running', disk })
const powers: Readonly<Partial<Record<ActName, Power>>> = {
  start: 'running',
  stop: 'stopped',
  suspend: 'suspended',
  resume: 'running',
  crash: 'failed',
}

/** For an accepted act. */
export function after(state: State, act: Act): State {
  const { vm, image, saved } = state
  if (act.name === 'deploy') return { ...state, vm: { power: 'running', disk: image } }
  if (act.name === 'delete image')
    return { ...state, saved: Object.fromEntries(Object.entries(saved).filter(([name]) => name !== act.image)) }
  if (!vm) return state
  switch (act.name) {
    case 'delete':
      return { ...state, vm: undefined }
    case 'revert':
      // A grown disk keeps its size.
      return { ...state, vm: running(vm, { ...image, sizeGb: Math.max(image.sizeGb, vm.disk.sizeGb) }) }
    case 'resize':
      return { ...state, vm: running(vm, { ...vm.disk, sizeGb: act.sizeGb }) }
    case 'save':
      return { ...state, saved: { ...saved, [act.image]: vm.disk } }
    case 'commit':
      return { ...state, image: vm.disk }
    case 'push':
      return state
    case 'write': {
      const bytes = Buffer.from(vm.disk.bytes)
      for (const { offset, length, byte } of act.writes) bytes.fill(byte, offset, offset + length)
      return { ...state, vm: { ...vm, disk: { ...vm.disk, bytes } } }
    }
    default:
      return { ...state, vm: { ...vm, power: powers[act.name] ?? vm.power } }
  }
}
