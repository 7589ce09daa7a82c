// Whether the account of a token still exists. Deleting an account, or creating it again, ends all of its tokens.
import type { Collections } from '../store/records/collections.ts'
import type { Principal } from './principal.ts'

export interface Accounts {
  isCurrent(principal: Principal): boolean
}

/** `isCurrentUser` is for users of the built-in provider, whose tokens have a uid. */
export function createAccounts(
  { serviceAccounts, nodes, servers }: Pick<Collections, 'serviceAccounts' | 'nodes' | 'servers'>,
  isCurrentUser: (uid: string) => boolean,
): Accounts {
  return {
    isCurrent: (principal) => {
      switch (principal.kind) {
        case 'user':
          return principal.uid === undefined || isCurrentUser(principal.uid)
        case 'serviceaccount':
          return serviceAccounts.get(principal.namespace, principal.name)?.value.uid === principal.uid
        case 'agent':
          return nodes.get('', principal.name)?.value.uid === principal.uid
        case 'server':
          return servers.get('', principal.name)?.value.run === principal.uid
      }
    },
  }
}
