// Estimates of where a VM would be placed, without deploying it.
import * as t from 'typebox'
import { inNamespace, operation } from '../operation.ts'
import { VmDeployment } from './vm-deployment.ts'
import { NodeVerdict } from './vms.ts'

export const VmEstimate = t.Object(
  {
    node: t.Optional(t.String({ description: 'Node that would run it now; absent if none' })),
    cpu: t.Integer(),
    memory: t.String({ description: 'Memory, such as `4.80Gi`; `auto` without a node' }),
    image: t.String(),
    architecture: t.String(),
    os: t.Optional(t.String({ description: 'Guest system of the image, if known' })),
    size: t.Optional(t.String({ description: 'Disk size of the image, such as `90G`' })),
    spaceUsed: t.Optional(t.String({ description: 'Download size for a node without the image, such as `24G`' })),
    imageProblem: t.Optional(t.String({ description: 'Why the registry did not answer; the rest ignores the image' })),
    overQuota: t.Optional(t.String({ description: 'Why it would wait for the quota of the namespace' })),
    warm: t.Optional(t.String({ description: 'Pool that would provide a warm VM' })),
    hasImage: t.Boolean({ description: 'The node already has the image' }),
    message: t.String({ description: 'Where it would run, or why nowhere' }),
    nodes: t.Array(NodeVerdict, {
      description: 'Nodes of the namespace, at most 100',
    }),
  },
  { title: 'VmEstimate' },
)
export type VmEstimate = t.Static<typeof VmEstimate>

export const estimateVm = operation({
  id: 'estimateVm',
  noun: 'estimates',
  method: 'POST',
  path: `${inNamespace}/vms/estimate`,
  allow: 'dev',
  summary: 'Estimate where a VM would run, without deploying it',
  description:
    'Uses the placement rules and the free capacity of now. Refuses what a deploy would refuse. ' +
    'Reads an image in a registry for at most 5 s. Reserves nothing.',
  involves: 'body.image',
  past: 'checked where a VM from {name} would run',
  isIdempotent: true,
  body: VmDeployment,
  response: VmEstimate,
  refuses: ['AlreadyExists', 'Invalid', 'Conflict'],
  example: {
    params: { namespace: 'svc-default' },
    body: { image: 'sonoma', cpu: 3 },
    response: {
      node: 'mini-arm-13',
      cpu: 3,
      memory: '4.80Gi',
      image: 'sonoma',
      architecture: 'arm64',
      os: 'macos',
      size: '90G',
      spaceUsed: '24G',
      hasImage: true,
      message: 'Would run on mini-arm-13, which has the image',
      nodes: [{ name: 'mini-arm-13', fits: true, reason: 'has 8 of 8 cores and 16 GiB of 16 GiB memory free' }],
    },
  },
})
