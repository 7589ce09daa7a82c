// A wish as tests begin with it.
import type { WantedVm } from '../../../src/api/nodes/agent.ts'

export const wantedVm = (uid: string): WantedVm => ({
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
  netBoost: true,
  legacyIO: false,
  gpuPassthrough: false,
  metadata: { token: 'metadata-canary' },
  userdata: Buffer.from('userdata-canary').toString('base64'),
})
