// What the port for clients of Kubernetes works with.
import type { Clock } from '../../platform/clock.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { StalenessGuard } from '../cluster/staleness-guard.ts'
import type { Settings } from '../config/settings.ts'
import type { ObserveServices } from '../http/observe.ts'
import type { Operations } from '../operations/invoke.ts'
import type { Certificates } from '../tls/certificates.ts'
import type { StreamServices } from '../transfer/streams.ts'

export interface KubernetesServices extends Omit<StreamServices, 'metrics'>, ObserveServices {
  readonly settings: Settings
  readonly collections: Collections
  readonly operations: Operations
  readonly certificates: Certificates
  readonly clock: Clock
  readonly version: string
  readonly staleness?: StalenessGuard | undefined
  /** Where clients reach this port. */
  readonly kubernetesUrl: () => string | undefined
}
