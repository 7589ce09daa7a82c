// The mapping of the 2.4.x API to this one: one row for each line of docs/spec.md R50, which a test compares. The gateway,
// docs/reference/orka-2.4.md, `svc3 migrate map` and `svc3 migrate scan` read these rows.
import { operations } from '../api/index.ts'
import { anchorOf, type LegacyCall, type LegacyMethod, type LegacyRow, type Replacement } from './row.ts'

type RowOptions = Partial<Pick<LegacyRow, 'commands' | 'bodies' | 'kept'>> & { readonly alsoSent?: readonly string[] }

/** `GET/POST /users` → two calls. */
const callsOf = (texts: readonly string[]): LegacyCall[] =>
  texts.flatMap((text) => {
    const [methods = '', path = ''] = text.split(' ')
    return methods.split('/').map((method) => ({ method: method as LegacyMethod, path }))
  })

type RowFields = Pick<LegacyRow, 'fate' | 'operations' | 'advice'> & RowOptions

function row(group: string, texts: readonly string[], { alsoSent = [], ...rest }: RowFields) {
  const calls = callsOf(texts)
  const anchor = anchorOf(calls[0] as LegacyCall)
  const variants = callsOf(alsoSent)
  return { group, anchor, calls, variants, commands: [], bodies: [], kept: undefined, ...rest } satisfies LegacyRow
}

const rowsOf = (group: string) => ({
  replaced: (
    texts: readonly string[],
    by: readonly Replacement[],
    commands: readonly string[],
    more: RowOptions = {},
  ) => row(group, texts, { fate: 'replaced', operations: by, commands, advice: 'use the replacement', ...more }),
  removed: (
    texts: readonly string[],
    advice: string,
    more: RowOptions & { readonly operations?: readonly Replacement[] } = {},
  ) => row(group, texts, { fate: 'removed', operations: [], advice, ...more }),
  noEndpoint: (texts: readonly string[], advice: string, commands: readonly string[] = []) =>
    row(group, texts, { fate: 'no-endpoint', operations: [], advice, commands }),
})

const users = rowsOf('Users, tokens, access')
const vms = rowsOf('VMs and VM configurations')
const nodes = rowsOf('Nodes')
const images = rowsOf('Images')
const isos = rowsOf('ISOs')
const other = rowsOf('Certificates and other')

const {
  listVms, getVm, deployVm, deleteVm, execVm, saveVm, commitVm, listVmConfigs, getVmConfig, createVmConfig, deleteVmConfig,
  listNodes, tagNode, untagNode, listImages, copyImage, describeImage, deleteImage, generateImage, uploadImage,
  downloadImage, listIsos, copyIso, describeIso, deleteIso, uploadIso, listRemoteImages, pullRemoteImage, pullRemoteIso,
  uploadCertificate, createServiceAccountToken,
} = operations // biome-ignore format: a list to read

const shape = { name: 'ios-build', image: 'ventura', cpu: 6, memory: 0 }

export const legacyRows: readonly LegacyRow[] = [
  users.removed(['GET/POST/DELETE/PUT /users'], 'users come from the identity provider; role bindings grant access', {
    commands: ['svc3 rolebinding add-subject --user ada@example.com -n svc-default'],
    alsoSent: ['DELETE /users/{email}'],
  }),
  users.removed(['POST /users/password'], 'change passwords at the identity provider'),
  users.removed(
    ['POST /users/groups/{group}', 'POST /users/groups/$ungrouped'],
    'grouping is by namespaces and role bindings',
    { commands: ['svc3 namespace create svc-ios', 'svc3 rolebinding add-subject --user ada@example.com -n svc-ios'] },
  ),
  users.replaced(
    ['POST /token'],
    [createServiceAccountToken],
    ['svc3 user get-token', 'svc3 serviceaccount token jenkins'],
    {
      bodies: [{}],
    },
  ),
  users.removed(['DELETE/GET /token'], 'tokens expire, or end with their user or service account'),

  vms.replaced(['GET /resources/vm/list'], [listVms, listVmConfigs], ['svc3 vm list', 'svc3 vm-config list']),
  vms.removed(
    ['GET /resources/vm/list/all', 'GET /resources/vm/list/{user}'],
    'the two list endpoints return all VMs and VM configurations of all users in the namespace',
    {
      operations: [listVms, listVmConfigs],
      commands: ['svc3 vm list', 'svc3 vm-config list'],
      kept: 'the gateway answers with the same two lists; for {user}, only what that user owns',
    },
  ),
  vms.replaced(['GET /resources/vm/status/{vm}'], [getVm], ['svc3 vm list NAME -o wide']),
  vms.replaced(['GET /resources/vm/configs'], [listVmConfigs], ['svc3 vm-config list']),
  vms.replaced(['GET /resources/vm/configs/{vmconfig}'], [getVmConfig], ['svc3 vm-config list NAME -o wide']),
  vms.replaced(
    ['POST /resources/vm/create'],
    [createVmConfig],
    ['svc3 vm-config create ios-build --image ventura --cpu 6'],
    { bodies: [shape] },
  ),
  vms.replaced(['POST /resources/vm/deploy'], [deployVm], ['svc3 vm deploy --config ios-build'], {
    bodies: [{ name: 'ios-build', vmConfig: 'ios-build' }],
  }),
  vms.replaced(['DELETE /resources/vm/delete'], [deleteVm], ['svc3 vm delete NAME']),
  vms.replaced(
    ['DELETE /resources/vm/purge'],
    [deleteVm, deleteVmConfig],
    ['svc3 vm delete NAME', 'svc3 vm-config delete NAME'],
  ),
  vms.replaced(
    [
      'POST /resources/vm/exec/start',
      'POST /resources/vm/exec/stop',
      'POST /resources/vm/exec/resume',
      'POST /resources/vm/exec/suspend',
      'POST /resources/vm/exec/revert',
    ],
    [execVm],
    ['svc3 vm {verb} NAME'],
    { bodies: [{ command: '{verb}' }] },
  ),
  vms.removed(['POST /resources/vm/list-disks', 'POST /resources/vm/attach-disk'], 'attached disks no longer exist', {
    alsoSent: ['GET /resources/vm/list-disks'],
  }),
  vms.removed(
    ['POST /resources/vm/configs/save-state', 'POST /resources/vm/configs/{vmconfig}/delete-state'],
    'VM states no longer exist: save the VM as an image, and deploy that',
    {
      commands: ['svc3 vm save NAME NEW_IMAGE_NAME'],
      alsoSent: ['DELETE /resources/vm/configs/{vmconfig}/delete-state'],
    },
  ),

  nodes.replaced(['GET /resources/node/list'], [listNodes], ['svc3 node list']),
  nodes.removed(['GET /resources/node/list/all'], 'the nodes list returns all nodes of the namespace', {
    commands: ['svc3 node list'],
  }),
  nodes.removed(['GET /resources/node/status/{node}'], 'use the nodes list', {
    commands: ['svc3 node list NAME -o wide'],
  }),
  nodes.removed(['GET /resources/ports'], 'the VM record includes its ports', { commands: ['svc3 vm list -o wide'] }),
  nodes.removed(['POST/DELETE /resources/node/sandbox'], 'sandboxing is by namespaces', {
    commands: ['svc3 namespace create svc-sandbox', 'svc3 node namespace NODE svc-sandbox'],
  }),
  nodes.removed(
    ['POST /resources/node/groups/{group}', 'POST /resources/node/groups/$ungrouped'],
    'grouping is by namespaces and role bindings',
    { commands: ['svc3 node namespace NODE svc-ios'] },
  ),
  nodes.replaced(['POST /resources/node/tag/{tag}'], [tagNode], ['svc3 node tag NODE TAG']),
  nodes.replaced(['DELETE /resources/node/tag/{tag}'], [untagNode], ['svc3 node untag NODE TAG']),

  images.replaced(['GET /resources/image/list'], [listImages], ['svc3 image list']),
  images.removed(
    ['POST /resources/image/rename'],
    'images cannot be renamed: change the description, or copy the image and delete the old one',
    { operations: [describeImage], commands: ['svc3 image set-description NAME TEXT'] },
  ),
  images.replaced(['POST /resources/image/copy'], [copyImage], ['svc3 image copy NAME NEW_NAME']),
  images.replaced(['GET /resources/image/list-remote'], [listRemoteImages], ['svc3 remote-image list']),
  images.replaced(['POST /resources/image/pull'], [pullRemoteImage], ['svc3 remote-image pull REMOTE NAME']),
  images.replaced(['POST /resources/image/delete'], [deleteImage], ['svc3 image delete NAME']),
  images.replaced(['POST /resources/image/commit'], [commitVm], ['svc3 vm commit VM']),
  images.replaced(['POST /resources/image/save'], [saveVm], ['svc3 vm save VM NEW_IMAGE_NAME']),
  images.noEndpoint(['POST /resources/image/resize'], 'enlarge the disk of a running VM', ['svc3 vm resize VM 120']),
  images.replaced(['POST /resources/image/generate'], [generateImage], ['svc3 image generate NAME 120G']),
  images.replaced(['POST /resources/image/upload'], [uploadImage], ['svc3 image upload FILE']),
  images.replaced(['GET /resources/image/download/{image}'], [downloadImage], ['svc3 image download NAME']),
  images.noEndpoint(['GET /resources/image/checksum/{image}'], 'the image record includes its checksum', [
    'svc3 image list NAME -o json',
  ]),

  isos.replaced(['GET /resources/iso/list'], [listIsos], ['svc3 iso list']),
  isos.replaced(['GET /resources/iso/list-remote'], [listRemoteImages], ['svc3 remote-iso list']),
  isos.replaced(['POST /resources/iso/pull'], [pullRemoteIso], ['svc3 remote-iso pull REMOTE NAME']),
  isos.removed(
    ['POST /resources/iso/rename'],
    'ISOs cannot be renamed: change the description, or copy the ISO and delete the old one',
    { operations: [describeIso], commands: ['svc3 iso set-description NAME TEXT'] },
  ),
  isos.replaced(['POST /resources/iso/copy'], [copyIso], ['svc3 iso copy NAME NEW_NAME']),
  isos.replaced(['POST /resources/iso/delete'], [deleteIso], ['svc3 iso delete NAME']),
  isos.replaced(['POST /resources/iso/upload'], [uploadIso], ['svc3 iso upload FILE']),

  other.replaced(['POST /resources/cert/set'], [uploadCertificate], []),
  other.removed(
    [
      'GET/POST/DELETE /resources/kube-account',
      'POST /resources/kube-account/regenerate',
      'GET /resources/kube-account/download',
    ],
    'Kubernetes accounts no longer exist; use service accounts',
    { commands: ['svc3 serviceaccount create jenkins', 'svc3 serviceaccount token jenkins'] },
  ),
  other.removed(
    ['POST /logs/query', 'DELETE /logs'],
    'the log cannot be queried: events show who changed what; operators have the service log',
    { commands: ['svc3 events'] },
  ),
  other.removed(
    ['GET /health-check', 'GET /version', 'GET /version/?all=true', 'GET /default-base-image'],
    'use /api/v1/cluster-info for the version, /healthz and /readyz for health; there is no default image',
    {
      commands: ['svc3 version'],
      kept: 'GET /health-check answers with api_version 2.4.0, which clients check first',
    },
  ),
  other.removed(
    ['GET /validation-requirements'],
    "user credentials are handled through the identity provider (the vendor's customer portal)",
  ),
  other.removed(['GET /validate-license-key'], 'license keys are obsolete; do not send one'),
]

export const rowsByGroup: ReadonlyMap<string, readonly LegacyRow[]> = Map.groupBy(legacyRows, ({ group }) => group)
