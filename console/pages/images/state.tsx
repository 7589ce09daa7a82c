// The state label of an image.
import type { Image } from '../../../src/api/images/images.ts'
import { State, type Tone } from '../../ui/state.tsx'

const tones = { Ready: 'good', Updating: 'busy', Failed: 'bad' } as const satisfies Record<Image['state'], Tone>

export const ImageState = ({ image }: { readonly image: Image }) => (
  <span className="line wraps">
    <State tone={tones[image.state]} word={image.state} />
    {image.protected && <span className="tag">Protected</span>}
  </span>
)
