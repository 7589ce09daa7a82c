// Who calls paths of 2.4.x, as counted by the gateway.
import type * as api from '../../../api/service/legacy-usage.ts'
import type { HandlersOf } from '../../handlers.ts'
import type { Services } from '../../services.ts'

export function legacyUsage({ legacyUsage: usage, settings }: Services): HandlersOf<typeof api> {
  return {
    async getLegacyUsage() {
      await usage.flush()
      return { enabled: settings.legacy.enabled === true, items: usage.items() }
    },
  }
}
