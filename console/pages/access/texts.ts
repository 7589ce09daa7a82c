// What the pages of the administration say, in English.

export const credentialTexts = {
  title: 'Registry credentials',
  add: 'Add credentials',
  text: 'Pulls and pushes of a namespace use them. Passwords are sealed when they arrive and never shown again.',
  emptyTitle: 'No credentials yet',
  emptyText: 'Private registries need a user name and a password, once per namespace.',
  server: 'Registry',
  serverHint: 'With its scheme, such as https://ghcr.io',
  username: 'User name',
  password: 'Password',
  allowInsecure: 'Allow plain HTTP',
  replace: 'Replace what is stored for this registry',
  updatedBy: 'Stored by',
  remove: 'Remove',
  removeText: 'Pulls and pushes that need them fail from then on.',
} as const

export const namespaceTexts = {
  title: 'Namespaces',
  create: 'Create namespace',
  nameHint: 'Begins with svc-; lowercase letters, digits, dashes',
  customPods: 'Keep it for other workloads: VMs are refused there',
  forVms: 'VMs',
  forPods: 'other workloads',
  use: 'For',
  deleteText: 'With its credentials, service accounts and role bindings. Refused while VMs or nodes are in it.',
  isDefault: 'the default namespace stays',
} as const

export const roleTexts = {
  title: 'Access',
  text: 'Who may work in the namespace as a developer. In the default namespace every user is one until removed.',
  add: 'Give access',
  emptyTitle: 'Nobody is listed',
  emptyText: 'Give people or service accounts the role of a developer in this namespace.',
  users: 'Users',
  usersHint: 'E-mail addresses, joined by commas',
  accounts: 'Service accounts',
  accountsHint: 'NAMESPACE:NAME, joined by commas',
  kind: 'Kind',
  remove: 'Take away',
  removeText: 'They cannot see or change anything in the namespace from then on.',
} as const

export const accountTexts = {
  title: 'Service accounts',
  create: 'Create service account',
  emptyTitle: 'No service accounts yet',
  emptyText: 'CI systems use the service with the token of a service account.',
  nameHint: 'Lowercase letters, digits, dashes, periods',
  token: 'Make a token',
  tokenText: 'It is shown once. To take it back, delete the account.',
  duration: 'Valid for',
  durationHint: 'Such as 30d or 8760h; a year when left out',
  noExpiration: 'Without an end',
  tokenOnce: 'Copy it now: it is not shown again.',
  tokenEnds: 'It ends',
  tokenNoEnd: 'It is valid until the account is deleted.',
  deleteText: 'All its tokens end at once.',
} as const
