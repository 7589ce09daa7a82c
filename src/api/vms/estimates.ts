// Where a deployment would go, before it is made.
import * as t from 'typebox'
import { inNamespace, operation } from '../operation.ts'
import { VmDeployment } from './vm-deployment.ts'

export const VmEstimate = t.Object(
  {
    node: t.Optional(t.String({ description: 'Where it would go now; missing when nowhere' })),
    cpu: t.Integer(),
    memory: t.String({ description: 'Such as `4.80Gi`; `auto` when no node is chosen' }),
    image: t.String(),
    architecture: t.String(),
    os: t.Optional(t.String({ description: 'Which guest it holds, where somebody said so' })),
    size: t.Optional(t.String({ description: "The image's disk, such as `90G`" })),
    spaceUsed: t.Optional(t.String({ description: 'What is fetched by a node that has nothing of it, such as `24G`' })),
    imageProblem: t.Optional(
      t.String({ description: 'Why the registry could not be asked: the rest is said without knowing the image' }),
    ),
    hasImage: t.Boolean({ description: 'The node has the image already: nothing needs to be fetched' }),
    message: t.String({ description: 'In a sentence: where, or why nowhere' }),
    nodes: t.Array(t.Object({ name: t.String(), fits: t.Boolean(), reason: t.String() }), {
      description: 'Every node of the namespace, up to 100 of them',
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
  status: 200,
  summary: 'Say where a VM would go, and deploy nothing',
  description:
    'By the rules that deployments are placed by, from what nodes have free now. Refuses what a deployment would refuse. ' +
    'An image in a registry is looked at there, for five seconds at most. Nothing is written, and nothing is kept free.',
  involves: 'body.image',
  isIdempotent: true,
  body: VmDeployment,
  response: VmEstimate,
  refuses: ['NotFound', 'AlreadyExists', 'Invalid', 'Conflict'],
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
      message: 'it would go to node "mini-arm-13", which has the image',
      nodes: [{ name: 'mini-arm-13', fits: true, reason: 'has 8 of 8 cores and 16384 of 16384 MiB of memory free' }],
    },
  },
})
