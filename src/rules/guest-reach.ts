// What the condition `GuestReachable` means for people: what happened, and what to do next.
import { type UnreachableReason, unreachableReasons } from '../api/vms/guest-reach.ts'
import type { Vm } from '../api/vms/vms.ts'

interface Text {
  readonly what: string
  readonly next: string
}

const texts: Readonly<Record<UnreachableReason, Text>> = {
  NoAddress: {
    what: 'the guest has no IP address',
    next: 'Wait while it boots. If that does not help, look at its screen, and ask an administrator whether the host has DHCP leases left',
  },
  NoRoute: {
    what: 'the node has no route to the guest',
    next: 'Wait while it boots. If that does not help, ask an administrator to check the network of the node',
  },
  Refused: {
    what: 'nothing listens on port 22 of the guest',
    next: 'Wait while it boots. If that does not help, enable SSH in the guest (macOS: Remote Login)',
  },
  BlockedByLocalNetwork: {
    what: 'macOS on the node blocks connections to its local network',
    next: 'Ask an administrator to allow the agent the local network on the node, or to restart the node',
  },
  OtherGuest: {
    what: 'another VM has the IP address of the guest',
    next: 'Restart the guest from its screen, or delete the VM and deploy another',
  },
  NoAnswer: {
    what: 'the guest does not answer on port 22',
    next: 'Wait while it boots. If that does not help, look at its logs and its screen',
  },
}

const conditionOf = ({ conditions }: Pick<Vm, 'conditions'>) => conditions.find(({ type }) => type === 'GuestReachable')

/** False while it is unknown, too. */
export const isGuestReachable = (vm: Pick<Vm, 'conditions'>): boolean => conditionOf(vm)?.status === 'True'

/** Why the guest cannot be reached, with the last error, and what to do; undefined unless that is so. */
export function reachProblem(vm: Pick<Vm, 'conditions'>): Text | undefined {
  const condition = conditionOf(vm)
  if (condition?.status !== 'False') return undefined
  // A newer agent may have reasons that are unknown here.
  const reason = unreachableReasons.find((each) => each === condition.reason) ?? 'NoAnswer'
  const { what, next } = texts[reason]
  return { what: `${what} (${condition.message})`, next }
}
