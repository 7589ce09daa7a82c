// The time range of charts, kept in the URL, with its picker.
import { useLocation, useSearch } from 'wouter'
import { Button } from '../../ui/button.tsx'
import { type Range, rangeFrom, zoneText } from './model.ts'

const rangeTitles = { '1h': 'Last hour', '6h': 'Last 6 hours', '24h': 'Last 24 hours', '7d': 'Last 7 days' }

export function useRange(ranges: readonly Range[], first?: Range): [minutes: number, pick: (range: Range) => void] {
  const [place, go] = useLocation()
  const query = new URLSearchParams(useSearch())
  const pick = (range: Range): void => {
    query.set('range', range)
    go(`${place}?${query}`, { replace: true })
  }
  return [rangeFrom(query.get('range') ?? first ?? null, ranges), pick]
}

interface Props {
  readonly ranges: readonly Range[]
  readonly minutes: number
  readonly onPick: (range: Range) => void
}

export const RangePicker = ({ ranges, minutes, onPick }: Props) => (
  <div className="line range">
    <fieldset className="line plain">
      <legend className="hidden-text">Time range</legend>
      {ranges.map((range) => (
        <Button
          key={range}
          size="small"
          aria-pressed={rangeFrom(range, ranges) === minutes}
          title={rangeTitles[range]}
          onClick={() => onPick(range)}
        >
          {range}
        </Button>
      ))}
    </fieldset>
    <span className="muted small">{zoneText(new Date())}</span>
  </div>
)
