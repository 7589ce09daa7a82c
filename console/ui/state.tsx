// What state something is in, by word and colour; never by colour alone.

export type Tone = 'good' | 'warn' | 'bad' | 'busy' | 'idle'

export function State({ tone, word }: { readonly tone: Tone; readonly word: string }) {
  return (
    <span className="state" data-tone={tone}>
      {word}
    </span>
  )
}
