// Agents report totals since their start. This makes increments of them, for the metrics of the server.
import { ImageFigures } from '../../api/nodes/agent.ts'

/** An agent may send other fields, too. */
const names = Object.keys(ImageFigures.properties) as (keyof ImageFigures)[]

export function createImageFigures(
  add: (figures: ImageFigures) => void,
): (node: string, figures: ImageFigures) => void {
  const known = new Map<string, ImageFigures>()
  return (node, report) => {
    const figures = Object.fromEntries(names.map((name) => [name, report[name]])) as ImageFigures
    const before = known.get(node)
    known.set(node, figures)
    // Totals that went down are those of a restarted agent.
    const isSame = before !== undefined && figures.reads >= before.reads && figures.serverBytes >= before.serverBytes
    const added = names.map((name) => [name, Math.max(0, figures[name] - (isSame ? before[name] : 0))])
    add(Object.fromEntries(added) as ImageFigures)
  }
}
