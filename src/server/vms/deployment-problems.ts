// Validates the fields of a deployment or a VM configuration, each by itself.
import { type Cause, invalidField, invalidIf } from '../../api/errors.ts'
import type { VmConfigInput } from '../../api/vms/vm-configs.ts'
import type { VmDeployment } from '../../api/vms/vm-deployment.ts'
import { parseTtl, ttlRule } from '../../rules/durations.ts'
import { isVmConfigName, vmNameProblem } from '../../rules/names.ts'
import { parseReservedPorts } from '../../rules/ports.ts'
import { ownLabelProblems } from '../gate/record-metadata.ts'
import { metadataOf } from './metadata.ts'
import { shapeOf, shapeProblems } from './shape.ts'

/** All problems except those of the shape. */
export function deploymentProblems(body: VmDeployment): Cause[] {
  const { name, ttl, userdata } = body
  const nameProblem = name ? vmNameProblem(name, body.shouldGenerateName === true) : undefined
  return [
    ...(nameProblem ? [invalidField('name', `name "${name?.slice(0, 100)}" ${nameProblem}`)] : []),
    ...parseReservedPorts(body.reservedPorts ?? '').causes,
    ...metadataOf(body).problems,
    ...invalidIf(
      Boolean(ttl) && parseTtl(ttl ?? '') === undefined,
      'ttl',
      `ttl "${ttl}" is not ${ttlRule}; use 2h or 30m, for example`,
    ),
    ...invalidIf(
      !/^[A-Za-z0-9+/]*={0,2}$/.test((userdata ?? '').replaceAll(/\s/g, '')),
      'userdata',
      'userdata is not base64',
    ),
    ...labelProblems(body.labels ?? {}),
    ...ownLabelProblems(body.labels ?? {}),
  ]
}

export const configNameProblems = (name: string): Cause[] =>
  invalidIf(
    !isVmConfigName(name),
    'name',
    `"${name.slice(0, 100)}" is not a valid name: use at most 50 lowercase letters, digits and dashes`,
  )

/** Problems that do not depend on the image and the configuration, reported together with those of the schema. */
export function checkDeployment(body: Partial<VmDeployment>): Cause[] {
  const fromConfig = new Set(body.vmConfig ? ['tagRequired'] : [])
  return [...shapeChecks(body).filter(({ field }) => !fromConfig.has(field)), ...deploymentProblems(body)]
}

export const checkConfig = (body: Partial<VmConfigInput>): Cause[] => [
  ...shapeChecks(body),
  ...(body.name === undefined ? [] : configNameProblems(body.name)),
]

const shapeChecks = (body: Partial<VmDeployment>): Cause[] =>
  shapeProblems(shapeOf(body, { name: '', architecture: 'amd64' }), body)

function labelProblems(labels: Readonly<Record<string, string>>): Cause[] {
  const names = Object.keys(labels)
  const bad = names.filter((name) => !/^[A-Za-z0-9][A-Za-z0-9_./-]{0,127}$/.test(name))
  const problems = bad.map((name) => invalidField('labels', `invalid label name "${name.slice(0, 50)}"`))
  return names.length > 64 ? [invalidField('labels', 'at most 64 labels'), ...problems] : problems
}
