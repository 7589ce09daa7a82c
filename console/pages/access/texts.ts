// What the pages of the administration say, in English.
import type { ActionWords } from '../../texts.ts'

export const credentialTexts = {
  title: 'Registry credentials',
  text: 'Used to pull and push images in this namespace. Passwords are stored encrypted and never shown.',
  emptyTitle: 'No credentials yet',
  emptyText: 'Add a user name and password for each private registry.',
  server: 'Registry',
  serverHint: 'Include the scheme, for example https://ghcr.io',
  username: 'User name',
  password: 'Password',
  allowInsecure: 'Allow plain HTTP',
  replace: 'Replace existing credentials for this registry',
  updatedBy: 'Added by',
  add: {
    label: 'Add credentials',
    title: () => 'Add registry credentials',
    done: (server) => `Credentials for ${server} added`,
  },
  remove: {
    label: 'Remove',
    title: (server) => `Remove credentials for ${server}?`,
    text: 'Pulls and pushes that need them will fail.',
    done: (server) => `Credentials for ${server} removed`,
  },
} as const satisfies Record<string, string | ActionWords>

export const namespaceTexts = {
  title: 'Namespaces',
  nameHint: 'Starts with svc-; lowercase letters, digits and dashes',
  customPods: 'Reserve for other workloads (no VMs)',
  forVms: 'VMs',
  forPods: 'Other workloads',
  use: 'Used for',
  isDefault: 'The default namespace cannot be deleted',
  create: {
    label: 'Create namespace',
    title: () => 'Create namespace',
    done: (name) => `Namespace ${name} created`,
  },
  delete: {
    label: 'Delete',
    title: (name) => `Delete namespace ${name}?`,
    text: 'Its registry credentials, service accounts and role bindings are deleted too. Delete its VMs and move its nodes first.',
    done: (name) => `Namespace ${name} deleted`,
  },
} as const satisfies Record<string, string | ActionWords>

export const roleTexts = {
  title: 'Access',
  text: 'Users and service accounts with the developer role. In svc-default, every user has it unless removed.',
  emptyTitle: 'No developers added yet',
  emptyText: 'Grant users or service accounts the developer role in a namespace.',
  users: 'Users',
  usersHint: 'Email addresses, separated by commas',
  accounts: 'Service accounts',
  accountsHint: 'NAMESPACE:NAME, separated by commas',
  kind: 'Kind',
  /** Names as the API has them. */
  user: 'User',
  account: (namespace: string) => `Service account of ${namespace}`,
  subjects: 'A user or service account',
  revoked: (namespace: string) => `They can no longer view or change anything in ${namespace}.`,
  add: {
    label: 'Grant access',
    title: (namespace) => `Grant access to ${namespace}`,
    text: 'Grants the developer role in this namespace.',
    done: (namespace) => `Access to ${namespace} granted`,
  },
  remove: {
    label: 'Revoke access',
    title: (name) => `Revoke access of ${name}?`,
    done: (name) => `Access of ${name} revoked`,
  },
} as const satisfies Record<string, string | ActionWords | ((namespace: string) => string)>

export const accountTexts = {
  title: 'Service accounts',
  emptyTitle: 'No service accounts yet',
  emptyText: 'CI systems log in with the token of a service account.',
  nameHint: 'Lowercase letters, digits, dashes and periods',
  duration: 'Valid for',
  durationHint: 'For example 30d or 8760h (default: 1 year)',
  noExpiration: 'Never expires',
  tokenOnce: 'Copy the token now. It is not shown again.',
  tokenName: 'token',
  tokenEnds: 'Expires',
  tokenNoEnd: 'Valid until the service account is deleted.',
  create: {
    label: 'Create service account',
    title: () => 'Create service account',
    done: (name) => `Service account ${name} created`,
  },
  token: {
    label: 'Create token',
    title: (name) => `Create token for ${name}`,
    text: 'The token is shown once. To revoke it, delete the service account.',
  },
  delete: {
    label: 'Delete',
    title: (name) => `Delete service account ${name}?`,
    text: 'All its tokens stop working immediately.',
    done: (name) => `Service account ${name} deleted`,
  },
} as const satisfies Record<string, string | ActionWords>
