// What happens while a command waits: one line that changes on a terminal, a plain line per step otherwise, nothing where
// only the answer is wanted.
import type { Context } from './context.ts'
import { visible } from './output.ts'

export interface Step {
  readonly text: string
  readonly percent?: number | undefined
}

export interface Progress {
  show(step: Step): void
  /** Before anything else is written: takes the changing line away. */
  end(): void
}

const silent: Progress = { show: () => undefined, end: () => undefined }
const tickMs = 1_000
/** Shorter waits need no clock. */
const patienceSeconds = 2
const barWidth = 20
const usualColumns = 80

/** `what` is being waited for, such as `vm demo`. */
export function startProgress({ host, isTalking }: Context, what: string): Progress {
  if (!isTalking) return silent
  return host.stderr.isTerminal ? changingLine(host.stderr, what) : plainLines(host.stderr, `${host.calledAs}: ${what}`)
}

type Stderr = Context['host']['stderr']

function plainLines(stderr: Stderr, what: string): Progress {
  let last = ''
  return {
    show({ text }) {
      if (text === last) return
      last = text
      stderr.write(`${what}: ${visible(text)}\n`)
    },
    end: () => undefined,
  }
}

function changingLine(stderr: Stderr, what: string): Progress {
  const startMs = performance.now()
  let step: Step | undefined
  const draw = (): void => {
    if (!step) return
    const seconds = Math.floor((performance.now() - startMs) / 1_000)
    const clock = seconds < patienceSeconds ? '' : ` (${seconds} s)`
    // One column is left free: a full line would wrap, and could not be taken back.
    const line = shortened(`${what}: ${visible(step.text)}${bar(step.percent)}`, columnsOf(stderr) - clock.length - 1)
    stderr.write(`\r\x1b[2K${line}${clock}`)
  }
  const timer = setInterval(draw, tickMs)
  return {
    show(next) {
      step = next
      draw()
    },
    end() {
      clearInterval(timer)
      if (step) stderr.write('\r\x1b[2K')
      step = undefined
    },
  }
}

/** Some terminals do not know their own width, and say 0. */
const columnsOf = ({ columns }: Stderr): number => Math.max(20, columns || usualColumns)

function bar(percent: number | undefined): string {
  if (percent === undefined) return ''
  const filled = Math.round((Math.min(100, Math.max(0, percent)) / 100) * barWidth)
  return ` [${'#'.repeat(filled)}${'-'.repeat(barWidth - filled)}] ${percent} %`
}

function shortened(text: string, length: number): string {
  const characters = [...text]
  return characters.length <= length ? text : `${characters.slice(0, length - 1).join('')}…`
}
