// The lineage of an image as a tree, with the size that each image adds.
import { Link } from 'wouter'
import type { Image } from '../../../src/api/images/images.ts'
import type { Lineage } from '../../../src/client/image-lineage.ts'
import { count } from '../../ui/sizes.ts'
import { addedText, type Branch, branchesOf, imagePathOf, originOf } from './lineage.ts'

export const LineageTree = ({ name, lineage }: { readonly name: string; readonly lineage: Lineage<Image> }) => (
  <>
    <ul className="tree" aria-label={`Lineage of ${name}`}>
      {branchesOf(lineage.rows).map((branch) => (
        <BranchItem key={branch.row.name} {...branch} />
      ))}
    </ul>
    {lineage.more > 0 && (
      <p className="muted small">{`and ${count(lineage.more, 'more image', 'more images')} made from it`}</p>
    )}
  </>
)

function BranchItem({ row, children }: Branch) {
  const path = imagePathOf(row)
  const added = addedText(row)
  return (
    <li>
      <div className="tree-row" aria-current={row.isSelf || undefined}>
        <span className="line">
          {path === undefined ? <span className="strong">{row.name}</span> : <Link href={path}>{row.name}</Link>}
          <span className="muted small">{originOf(row)}</span>
        </span>
        {added !== undefined && <span className="tabular">{added}</span>}
      </div>
      {children.length > 0 && (
        <ul>
          {children.map((branch) => (
            <BranchItem key={branch.row.name} {...branch} />
          ))}
        </ul>
      )}
    </li>
  )
}
