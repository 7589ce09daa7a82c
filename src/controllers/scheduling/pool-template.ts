// The current VM configuration and image of a pool, from which its slots are made.
import type { VmShape } from '../../api/vms/vm-shape.ts'
import { defaultNamespace } from '../../rules/names.ts'
import { type Demand, demandOf } from '../../rules/placement.ts'
import { neverWarm, type Pin } from '../../rules/pools/warm-match.ts'
import type { Collections } from '../../store/records/collections.ts'
import { isDeployable, type PoolRecord } from '../../store/records/fleet-records.ts'

interface Template {
  readonly shape: VmShape
  readonly pin: { readonly [K in keyof Pin]?: string }
  readonly demand: Demand
}

/** Returns a `problem` for people if the pool can have no slots now. */
export function poolTemplate(
  { vmConfigs, images }: Pick<Collections, 'vmConfigs' | 'images'>,
  { namespace, config }: Pick<PoolRecord, 'namespace' | 'config'>,
): Template | { readonly problem: string } {
  const shape = (vmConfigs.get(namespace, config) ?? vmConfigs.get(defaultNamespace, config))?.value.shape
  if (!shape) return { problem: `VM configuration ${config} not found in ${namespace}` }
  const never = neverWarm(shape)
  if (never !== undefined) return { problem: `VM configuration ${config} ${never}; such VMs are never warm` }
  const image = images.get('', shape.image)?.value
  if (!image) return { problem: `Image ${shape.image} is not stored on this service` }
  if (!isDeployable(image)) return { problem: `Image ${shape.image} is ${image.state} and cannot be deployed yet` }
  const { content, recipe, os } = image
  const pin = content !== undefined ? { imageContent: content } : recipe !== undefined ? { imageRecipe: recipe } : {}
  return { shape, pin, demand: demandOf({ shape, reservedPorts: [], os }) }
}
