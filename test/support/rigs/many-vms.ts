// Ten thousand VMs in a page: the test answers its WebSocket, the real server everything else.
import type { Page, WebSocketRoute } from 'playwright-core'
import { operations } from '../../../src/api/index.ts'

const example = operations.getVm.example.response

export const manyVm = (index: number, change: object = {}) => ({
  ...example,
  name: `vm-${String(index).padStart(5, '0')}`,
  uid: `uid-${index}`,
  node: `mini-${index % 50}`,
  resourceVersion: String(index + 1),
  ...change,
})

interface ManyVms {
  /** Sends changes of VMs in one message. */
  change(vms: readonly object[]): void
}

export async function serveManyVms(page: Page, count: number): Promise<ManyVms> {
  let socket: WebSocketRoute | undefined
  let vmWatch = 0
  const send = (watch: number, type: string, objects: readonly object[]): void =>
    socket?.send(JSON.stringify(objects.map((object) => ({ watch, type, object }))))
  await page.routeWebSocket(/\/api\/v1\/watch$/, (opened) => {
    socket = opened
    opened.onMessage((message) => {
      const { watch, path } = JSON.parse(String(message)) as { watch?: number; path?: string }
      if (watch === undefined || path === undefined) return
      if (path.endsWith('/namespaces')) send(watch, 'ADDED', [{ ...operations.getNamespace.example.response }])
      if (path.endsWith('/vms')) {
        vmWatch = watch
        for (let from = 0; from < count; from += 500)
          send(
            watch,
            'ADDED',
            Array.from({ length: Math.min(500, count - from) }, (_, index) => manyVm(from + index)),
          )
      }
      send(watch, 'BOOKMARK', [{ resourceVersion: '99999' }])
    })
  })
  return { change: (vms) => send(vmWatch, 'MODIFIED', vms) }
}
