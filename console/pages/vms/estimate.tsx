// Where a deployment would go, asked of the service while the form is filled in.
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { estimateVm } from '../../../src/api/vms/estimates.ts'
import type { VmDeployment } from '../../../src/api/vms/vm-deployment.ts'
import { tellError } from '../../api/act.ts'
import { client } from '../../api/client.ts'
import { texts } from '../../texts.ts'

interface Props {
  readonly namespace: string
  /** Undefined while something in the form is wrong. */
  readonly body: VmDeployment | undefined
}

const words = texts.deploy
/** Nobody is asked for every letter that is typed. */
const pauseMs = 250

function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), pauseMs)
    return () => clearTimeout(timer)
  }, [value])
  return settled
}

export function Estimate({ namespace, body }: Props) {
  const asked = useSettled(body === undefined ? '' : JSON.stringify(body))
  const { data, error, isFetching } = useQuery({
    queryKey: ['estimate', namespace, asked],
    queryFn: ({ signal }) =>
      client.call(estimateVm, { params: { namespace }, body: JSON.parse(asked) as VmDeployment, signal }),
    enabled: asked !== '',
    placeholderData: (before) => before,
  })
  const isAsked = body !== undefined && asked !== ''
  const tone = !isAsked || !(data || error) ? undefined : error ? 'bad' : data?.node === undefined ? 'warn' : 'good'
  return (
    <div className="note" data-tone={tone} role="status" aria-busy={isFetching}>
      <b>{words.estimate}</b>
      <span>
        {!isAsked ? words.noEstimate : error ? tellError(error).message : (data?.message ?? words.estimating)}
      </span>
      {isAsked && data !== undefined && !error && data.nodes.length > 1 && (
        <details className="more small">
          <summary>{words.perNode}</summary>
          <ul>
            {data.nodes.map(({ name, fits, reason }) => (
              <li key={name}>{`${fits ? '✓' : '–'} ${name}: ${reason}`}</li>
            ))}
          </ul>
        </details>
      )}
    </div>
  )
}
