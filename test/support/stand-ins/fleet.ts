// VMs and nodes for tests of the command line: responses of the stand-in service by route, and a watch that tests write
// to.
import type { ServerResponse } from 'node:http'
import { ApiError } from '../../../src/api/errors.ts'
import type { Node } from '../../../src/api/nodes/nodes.ts'
import type { Vm } from '../../../src/api/vms/vms.ts'
import { type FakeService, type Seen, send } from './api.ts'

export const vmOf = (fields: Partial<Vm> & { readonly name: string }): Vm => ({
  namespace: 'svc-default',
  uid: `uid-of-${fields.name}`,
  status: 'Running',
  powerState: 'running',
  node: 'mini-1',
  ip: '10.0.0.7',
  ssh: 8822,
  vnc: 5999,
  screenshare: 5900,
  reservedPorts: [],
  cpu: 3,
  memory: '4.80Gi',
  diskGb: 90,
  diskGeneration: 1,
  image: 'sonoma',
  architecture: 'amd64',
  type: 'amd64',
  gpuPassthrough: false,
  owner: 'ada@example.com',
  deployDate: '2026-11-15T09:00:30Z',
  labels: {},
  metadataKeys: [],
  conditions: [],
  resourceVersion: '42',
  ...fields,
})

/** No node was found for it. */
export function pendingVm(name: string, message: string): Vm {
  const { node: _, ip: __, ssh: ___, vnc: ____, screenshare: _____, diskGb: ______, ...rest } = vmOf({ name })
  const condition = {
    type: 'Scheduled',
    status: 'False',
    reason: 'NoNode',
    message,
    at: '2026-11-15T09:00:30Z',
  } as const
  return { ...rest, status: 'Pending', powerState: 'pending', memory: 'auto', conditions: [condition] }
}

export const nodeOf = (fields: Partial<Node> & { readonly name: string }): Node => ({
  namespace: 'svc-default',
  uid: `uid-of-${fields.name}`,
  nodeIP: '10.0.0.7',
  architecture: 'arm64',
  availableCpu: 5,
  availableMemory: '11.20G',
  availableGpu: 0,
  allocatableCpu: 8,
  allocatableMemory: '16.00G',
  allocatableGpu: 0,
  nodeType: 'WORKER',
  phase: 'READY',
  cordoned: false,
  orkaTags: [],
  vms: [],
  images: [],
  driver: 'qemu',
  version: '3.0.0',
  os: 'Linux 6.1',
  createdAt: '2026-11-15T09:00:00Z',
  resourceVersion: '21',
  ...fields,
})

export interface Asked {
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: Seen['headers']
  readonly body: Readonly<Record<string, unknown>>
}

/** Returns the response, or writes it and returns nothing. A thrown ApiError is a refusal. */
export type Answer = (asked: Asked, response: ServerResponse) => unknown

/** Routes such as `POST vms/demo/exec`, in any namespace; `WATCH vms` is a watch. Others are not found. */
export function serve(service: FakeService, routes: Readonly<Record<string, Answer>>): void {
  service.override = async (seen, response) => {
    const url = new URL(seen.path, service.apiUrl)
    const path = decodeURIComponent(url.pathname.split('/').slice(5).join('/'))
    const isWatch = url.searchParams.get('watch') === 'true'
    const answer = routes[`${isWatch ? 'WATCH' : seen.method} ${path}`]
    const body = seen.body === '' ? {} : JSON.parse(seen.body)
    try {
      if (!answer) throw new ApiError('NotFound', `${seen.method} ${seen.path} not found`)
      const value = await answer({ path: seen.path, query: url.searchParams, headers: seen.headers, body }, response)
      if (value !== undefined) send(response, seen.method === 'POST' ? 201 : 200, value)
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      send(response, error.code, error.toStatus('request-1'))
    }
  }
}

export const change = (type: string, object: unknown): string => `${JSON.stringify({ type, object })}\n`

/** A watch with these changes and no others. */
export const changes =
  (...lines: readonly string[]): Answer =>
  (_, response) => {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' })
    response.write(lines.join(''))
  }
