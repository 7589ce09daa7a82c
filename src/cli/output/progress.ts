// Shows the progress of long commands: a changing line per item on a terminal, and plain lines from time to time in a log.
// Shows nothing with --quiet, -o json or -o yaml.
import type { Host } from '../host.ts'
import { visible } from './output.ts'
import { type Bytes, startRate } from './rate.ts'
import { cut, widthOf } from './text-width.ts'

/** The part of the context that progress needs. */
interface Talking {
  readonly host: Host
  readonly isTalking: boolean
}

export interface ProgressStep {
  /** The current step; empty if `bytes` suffices. */
  readonly text: string
  readonly percent?: number | undefined
  readonly bytes?: Bytes | undefined
}

export interface ProgressDisplay {
  show(step: ProgressStep): void
  /** Removes the changing line. Must be called before other output. */
  end(): void
}

/** Shows the progress of several items at once. */
export interface Board {
  item(what: string): ProgressDisplay
  /** Runs `write` so that its output appears above the changing lines. */
  above(write: () => void): void
  end(): void
}

const tickMs = 1_000
/** The shortest time between two redraws for new bytes. */
const terminalMs = 200
const logMs = 10_000
/** In a log, a step that takes longer is printed again. */
const sameStepMs = 30_000
/** Shorter waits show no elapsed time on a terminal. */
const minElapsedSeconds = 2
const barWidth = 20
const usualColumns = 80
const maxLines = 8

/** `what` names the item, such as `vm demo`. */
export function startProgress(context: Talking, what: string): ProgressDisplay {
  const board = startBoard(context)
  const { show } = board.item(what)
  return { show, end: () => board.end() }
}

export function startBoard({ host, isTalking }: Talking): Board {
  if (!isTalking)
    return {
      item: () => ({ show: () => undefined, end: () => undefined }),
      above: (write) => write(),
      end: () => undefined,
    }
  return host.stderr.isTerminal ? changingLines(host.stderr) : plainLines(host.stderr, host.calledAs)
}

type Stderr = Host['stderr']

function plainLines(stderr: Stderr, calledAs: string): Board {
  return {
    item(what) {
      const rate = startRate(performance.now())
      let last = ''
      let shownMs = performance.now()
      return {
        show(step) {
          const nowMs = performance.now()
          const isNew = step.text !== last
          if (step.bytes) rate(step.bytes, nowMs)
          if (!isNew && nowMs - shownMs < (step.bytes ? logMs : sameStepMs)) return
          if (!isNew && step.bytes === undefined && step.percent === undefined) return
          last = step.text
          shownMs = nowMs
          const { text, percent } = shownStep(step, rate, nowMs)
          stderr.write(`${calledAs}: ${what}: ${text}${percent === undefined || isNew ? '' : ` (${percent} %)`}\n`)
        },
        end: () => undefined,
      }
    },
    above: (write) => write(),
    end: () => undefined,
  }
}

interface Line {
  readonly what: string
  readonly startMs: number
  readonly rate: ReturnType<typeof startRate>
  step: ProgressStep | undefined
}

function changingLines(stderr: Stderr): Board {
  const lines: Line[] = []
  let drawn = 0
  let drawnMs = 0
  let timer: ReturnType<typeof setInterval> | undefined
  const clear = (): void => {
    if (drawn === 0) return
    stderr.write(`${'\r\x1b[2K\x1b[1A'.repeat(drawn - 1)}\r\x1b[2K`)
    drawn = 0
  }
  const draw = (): void => {
    const shown = lines.filter(({ step }) => step !== undefined)
    const texts = shown.slice(0, maxLines).map((line) => lineText(line, columnsOf(stderr)))
    if (shown.length > maxLines) texts[maxLines - 1] = `and ${shown.length - maxLines + 1} more`
    // Moves to the first line of the last drawing. If there are fewer lines now, clears the old ones.
    const back = drawn > 1 ? `\r\x1b[${drawn - 1}A` : '\r'
    if (texts.length < drawn) clear()
    if (texts.length > 0) stderr.write(`${drawn > 0 ? back : '\r'}${texts.map((text) => `\x1b[2K${text}`).join('\n')}`)
    drawn = texts.length
    drawnMs = performance.now()
  }
  const stop = (): void => {
    clearInterval(timer)
    timer = undefined
  }
  return {
    item(what) {
      const startMs = performance.now()
      const line: Line = { what, startMs, rate: startRate(startMs), step: undefined }
      lines.push(line)
      timer ??= setInterval(draw, tickMs)
      return {
        show(step) {
          const isSoon = step.bytes !== undefined && line.step?.text === step.text
          line.step = step
          if (isSoon && performance.now() - drawnMs < terminalMs) return
          draw()
        },
        end() {
          lines.splice(lines.indexOf(line), 1)
          draw()
          if (lines.length === 0) stop()
        },
      }
    },
    above(write) {
      clear()
      write()
      draw()
    },
    end() {
      stop()
      clear()
      lines.length = 0
    },
  }
}

function lineText({ what, startMs, rate, step = { text: '' } }: Line, columns: number): string {
  const nowMs = performance.now()
  const seconds = Math.floor((nowMs - startMs) / 1_000)
  const clock = seconds < minElapsedSeconds ? '' : ` (${seconds} s)`
  const { text, percent } = shownStep(step, rate, nowMs)
  // Leaves one column free, because a full line would wrap and could not be cleared.
  const room = columns - widthOf(clock) - 1
  const whole = `${what}: ${text}${bar(percent)}`
  const withoutBar = `${what}: ${text}${percent === undefined ? '' : ` ${percent} %`}`
  return (widthOf(whole) <= room ? whole : cut(withoutBar, room)) + clock
}

function shownStep(
  step: ProgressStep,
  rate: Line['rate'],
  nowMs: number,
): { text: string; percent: number | undefined } {
  const moved = step.bytes && rate(step.bytes, nowMs)
  const text = [step.text, moved?.text].filter(Boolean).join(': ')
  return { text: visible(text), percent: step.percent ?? moved?.percent }
}

/** Some terminals report a width of 0. */
const columnsOf = ({ columns }: Stderr): number => Math.max(20, columns || usualColumns)

function bar(percent: number | undefined): string {
  if (percent === undefined) return ''
  const filled = Math.round((Math.min(100, Math.max(0, percent)) / 100) * barWidth)
  return ` [${'#'.repeat(filled)}${'-'.repeat(barWidth - filled)}] ${percent} %`
}

/** Progress of a transfer whose length is known. */
export interface TransferMeter extends ProgressDisplay {
  /** Sets the number of bytes so far. */
  at(bytes: number): void
}

/** `startBytes` were transferred before. */
export function startMeter(context: Talking, what: string, totalBytes: number, startBytes = 0): TransferMeter {
  const progress = startProgress(context, what)
  return {
    ...progress,
    at: (bytes) => progress.show({ text: '', bytes: { done: bytes, total: totalBytes, from: startBytes } }),
  }
}

/** Estimates the total from the bytes so far and their percentage. */
export function stepOf(
  text: string,
  progress: { readonly percent: number; readonly bytes: number } | undefined,
): ProgressStep {
  const { percent = 0, bytes = 0 } = progress ?? {}
  const moved: Bytes | undefined =
    percent > 0 && bytes > 0
      ? { done: bytes, total: Math.round((bytes * 100) / percent), isTotalRough: true }
      : undefined
  return { text, percent, ...(moved && { bytes: moved }) }
}
