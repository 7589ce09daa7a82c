// Where a deployment would go, asked of the service while the form is filled in.
import type { VmDeployment } from '../../src/api/vm-deployment.ts'
import { texts } from '../texts.ts'

interface Props {
  readonly namespace: string
  /** Undefined while something in the form is wrong. */
  readonly body: VmDeployment | undefined
}

export function Estimate({ body }: Props) {
  return (
    <div className="note" role="status">
      {body === undefined ? texts.deploy.noEstimate : texts.deploy.estimating}
    </div>
  )
}
