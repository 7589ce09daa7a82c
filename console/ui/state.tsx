// State labels, which never rely on color alone, and progress bars and meters.

interface Props {
  readonly label: string
  readonly value: number
  readonly of: number
  /** What screen readers announce; by default the percentage. */
  readonly text?: string
  readonly role?: 'meter' | 'progressbar'
}

export function Bar({ label, value, of, text, role = 'progressbar' }: Props) {
  const percent = of > 0 ? Math.min(100, Math.max(0, Math.round((100 * value) / of))) : 0
  return (
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: both roles support these properties
    <span
      className="bar"
      role={role}
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={percent}
      aria-valuetext={text}
      data-tone={role === 'meter' && percent >= 90 ? 'warn' : undefined}
    >
      <span style={{ width: `${percent}%` }} />
    </span>
  )
}

export type Tone = 'good' | 'warn' | 'bad' | 'busy' | 'idle'

export function State({ tone, word }: { readonly tone: Tone; readonly word: string }) {
  return (
    <span className="state" data-tone={tone}>
      {word}
    </span>
  )
}
