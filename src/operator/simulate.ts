// --simulate: the behaviour of simulated nodes, as KNOB=VALUE pairs.
import { UsageError } from '../cli/line/usage.ts'
import type { SimulatedKnobs } from '../drivers/simulated.ts'
import { parseDuration } from '../rules/durations.ts'

export interface Simulation extends Pick<SimulatedKnobs, 'bootMs' | 'stopMs' | 'maxVms' | 'failAt'> {
  /** Nodes fail after about this time. */
  readonly loseAfterMs?: number
  /** Failed nodes return after about this time; by default they do not. */
  readonly backAfterMs?: number
}

const steps = ['create', 'start', 'stop', 'destroy', 'suspend', 'resume', 'grow', 'revert'] as const

export const simulateOption = {
  type: 'string',
  value: 'KNOB=VALUE',
  description: 'How simulated VMs behave: boot=2s, max-vms=2, fail-start=0.1, lose-after=1m …',
} as const

type Knob = (value: string) => Partial<Simulation> | undefined

const time =
  (name: 'bootMs' | 'stopMs' | 'loseAfterMs' | 'backAfterMs'): Knob =>
  (value) => {
    const milliseconds = /^\d+ms$/.test(value)
      ? Number.parseInt(value, 10)
      : (parseDuration(value) ?? Number.NaN) * 1_000
    return Number.isNaN(milliseconds) ? undefined : { [name]: milliseconds }
  }

const failure =
  (step: (typeof steps)[number]): Knob =>
  (value) => {
    const chance = value === 'once' ? value : Number(value)
    return chance === 'once' || (chance >= 0 && chance <= 1) ? { failAt: { [step]: chance } } : undefined
  }

const knobs: Readonly<Record<string, Knob>> = {
  boot: time('bootMs'),
  stop: time('stopMs'),
  'lose-after': time('loseAfterMs'),
  'back-after': time('backAfterMs'),
  'max-vms': (value) => (/^\d{1,5}$/.test(value) ? { maxVms: Number(value) } : undefined),
  ...Object.fromEntries(steps.map((step) => [`fail-${step}`, failure(step)])),
}

export function parseSimulation(text: string | undefined, driver: string): Simulation {
  if (text !== undefined && driver !== 'simulated')
    throw new UsageError('--simulate needs --driver simulated', 'Add --driver simulated, or remove --simulate')
  let simulation: Simulation = {}
  for (const pair of (text ?? '').split(',').filter((each) => each !== '')) {
    const [name = '', value = ''] = pair.split('=')
    const set = knobs[name]?.(value)
    if (!set)
      throw new UsageError(
        `Invalid --simulate "${pair}"`,
        `Use ${Object.keys(knobs).join(', ')}; for example boot=2s,fail-start=0.1`,
      )
    simulation = { ...simulation, ...set, failAt: { ...simulation.failAt, ...set.failAt } }
  }
  return simulation
}
