// A line chart of one series, drawn by uPlot on a canvas.
import 'uplot/dist/uPlot.min.css'
import '../../styles/chart.css'
import { useEffect, useRef } from 'react'
import UPlot from 'uplot'
import { stepsOf, timeTicks, topOf, type Unit } from './model.ts'

interface Props {
  readonly label: string
  readonly timesSeconds: readonly number[]
  readonly values: readonly (number | null)[]
  readonly format: (value: number) => string
  readonly unit: Unit
}

const heightPx = 150

export function Plot({ label, timesSeconds, values, format, unit }: Props) {
  const container = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot>(undefined)
  const latestFormat = useRef(format)
  latestFormat.current = format
  // biome-ignore lint/correctness/useExhaustiveDependencies: the chart is created once; the effect below sets its data
  useEffect(() => {
    const host = container.current
    if (!host) return
    const style = getComputedStyle(host)
    // A canvas does not understand light-dark(), so the current colors are resolved through a probe element.
    const colour = (name: string): string => {
      const probe = document.createElement('span')
      probe.style.color = `var(${name})`
      host.append(probe)
      const found = getComputedStyle(probe).color
      probe.remove()
      return found
    }
    const axis = { stroke: colour('--muted'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false } }
    const font = `12px ${style.fontFamily}`
    const chart = new UPlot(
      {
        width: host.clientWidth,
        height: heightPx,
        legend: { show: false },
        cursor: { y: false },
        scales: { y: { range: (_plot, _low, high) => [0, topOf(unit, high)] } },
        axes: [
          { ...axis, font, size: 26, values: (_plot, times, _axis, _space, step) => timeTicks(times, step) },
          {
            ...axis,
            font,
            size: 64,
            ...(stepsOf[unit] && { incrs: stepsOf[unit] }),
            values: (_plot, ticks) => ticks.map((tick) => latestFormat.current(tick)),
          },
        ],
        series: [{}, { label, stroke: colour('--fill-used'), width: 1.5, points: { size: 4 }, spanGaps: false }],
      },
      [[...timesSeconds], [...values]],
      host,
    )
    plot.current = chart
    const resized = new ResizeObserver(() => chart.setSize({ width: host.clientWidth, height: heightPx }))
    resized.observe(host)
    return () => {
      resized.disconnect()
      chart.destroy()
    }
  }, [])
  useEffect(() => plot.current?.setData([[...timesSeconds], [...values]]), [timesSeconds, values])
  return <div ref={container} className="chart" role="img" aria-label={label} />
}
