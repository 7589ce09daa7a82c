// Why a connection to a guest failed, in the words of the condition `GuestReachable`.
import type { Unreachable, UnreachableReason } from '../api/vms/guest-reach.ts'
import { addressKind } from '../rules/address-kinds.ts'

const reasons: Readonly<Record<string, UnreachableReason>> = {
  ECONNREFUSED: 'Refused',
  ECONNRESET: 'Refused',
  EHOSTUNREACH: 'NoRoute',
  EHOSTDOWN: 'NoRoute',
  ENETUNREACH: 'NoRoute',
}

/** macOS answers EHOSTUNREACH for private addresses if Local Network privacy applies to the program. */
export function unreachable(
  error: NodeJS.ErrnoException,
  address: string,
  platform: NodeJS.Platform = process.platform,
): Unreachable {
  const isBlocked = platform === 'darwin' && error.code === 'EHOSTUNREACH' && addressKind(address) === 'private'
  const reason = isBlocked ? 'BlockedByLocalNetwork' : (reasons[error.code ?? ''] ?? 'NoAnswer')
  return { reason, message: error.message }
}
