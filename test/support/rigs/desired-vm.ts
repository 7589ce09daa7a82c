// A desired state for tests to start from.

import type { DesiredVm } from '../../../src/api/nodes/agent.ts'
import { machineDefaults } from '../../../src/api/vms/vm-shape.ts'

export const desiredVm = (uid: string): DesiredVm => ({
  name: `vm-${uid}`,
  namespace: 'svc-default',
  uid,
  generation: 0,
  revision: '1',
  power: 'running',
  diskGeneration: 1,
  architecture: 'amd64',
  cpu: 1,
  memoryMiB: 256,
  image: { name: 'tiny-amd64', recipe: 'tiny-amd64' },
  ip: '127.0.0.1',
  ssh: 42_022,
  reservedPorts: [],
  display: { width: 800, height: 600, dpi: 96 },
  ...machineDefaults,
  facts: {},
  metadata: { token: 'metadata-canary' },
  userdata: Buffer.from('userdata-canary').toString('base64'),
})
