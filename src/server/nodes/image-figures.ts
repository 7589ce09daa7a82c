// What nodes have counted of images since their agents were started, made into what has been added since they last said so.
import type { ImageFigures } from '../../api/nodes/agent.ts'

/** Less than before: the agent was started anew. */
export function createImageFigures(
  add: (figures: ImageFigures) => void,
): (node: string, figures: ImageFigures) => void {
  const known = new Map<string, ImageFigures>()
  return (node, figures) => {
    const before = known.get(node)
    known.set(node, figures)
    const isSame = before !== undefined && figures.reads >= before.reads && figures.serverBytes >= before.serverBytes
    const names = Object.keys(figures) as (keyof ImageFigures)[]
    const added = names.map((name) => [name, Math.max(0, figures[name] - (isSame ? before[name] : 0))])
    add(Object.fromEntries(added) as ImageFigures)
  }
}
