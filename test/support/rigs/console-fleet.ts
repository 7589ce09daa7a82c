// The console of a fleet that exists only in records, opened by an administrator. Pages and watches are real.
import path from 'node:path'
import type { Browser } from 'playwright-core'
import { root } from '../processes/dev-server.ts'
import { type Opened, openConsole } from './console.ts'
import { launchBrowser } from './login.ts'
import { addManyRecords } from './many-records.ts'
import { startService, type TestService } from './service.ts'

interface FleetConsole extends AsyncDisposable {
  readonly service: TestService
  readonly browser: Browser
  readonly opened: Opened
}

export async function openFleet(fleet: Parameters<typeof addManyRecords>[1]): Promise<FleetConsole> {
  const service = await startService({ consoleFolder: path.join(root, 'dist/console') })
  service.clock.nowMs = Date.now()
  await addManyRecords(service, fleet)
  const browser = await launchBrowser()
  const apiUrl = await service.listen()
  const token = await service.tokenFor({ kind: 'user', name: 'admin@acme.dev', admin: true })
  const opened = await openConsole(browser, { apiUrl }, token)
  return {
    service,
    browser,
    opened,
    async [Symbol.asyncDispose]() {
      await browser.close()
      await service[Symbol.asyncDispose]()
    },
  }
}
