// Handler of legacy usage: the callers of 2.4.x paths.
import type * as api from '../../../api/service/legacy-usage.ts'
import type { Settings } from '../../config/settings.ts'
import type { LegacyUsageCounter } from '../../legacy/usage.ts'
import type { HandlersOf } from '../../operations/handlers.ts'

interface LegacyUsageServices {
  readonly legacyUsage: LegacyUsageCounter
  readonly settings: Pick<Settings, 'legacy'>
}

export function legacyUsage({ legacyUsage: usage, settings }: LegacyUsageServices): HandlersOf<typeof api> {
  return {
    async getLegacyUsage() {
      await usage.flush()
      return { enabled: settings.legacy.enabled === true, items: usage.items() }
    },
  }
}
