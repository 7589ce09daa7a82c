// The legacy calls that the gateway serves. All other calls in the table of src/legacy were removed in 3.0.
import { ApiError } from '../../api/errors.ts'
import { listNodes, tagNode, untagNode } from '../../api/nodes/nodes.ts'
import { type CertificateUpload, uploadCertificate } from '../../api/service/certificates.ts'
import type { Collections } from '../../store/records/collections.ts'
import type { LegacyHandler, LegacyHandlers } from './call.ts'
import { deployCalls } from './deploy.ts'
import { readLegacyFields, text } from './fields.ts'
import { imageCalls } from './images.ts'
import { shownNode } from './shapes.ts'
import { vmCalls } from './vms.ts'

const changeTag =
  (operation: typeof tagNode | typeof untagNode, message: (node: string, tag: string) => string): LegacyHandler =>
  async (context) => {
    const { orka_node_name: name } = readLegacyFields(context.fields, { orka_node_name: text }, ['orka_node_name'])
    const tag = context.params.tag ?? ''
    await context.run(operation, { params: { name }, body: { tag } })
    return { message: message(name, tag) }
  }

const nodeCalls: LegacyHandlers = {
  'GET /resources/node/list': async (context) => ({ nodes: (await context.list(listNodes)).map(shownNode) }),
  'POST /resources/node/tag/{tag}': changeTag(
    tagNode,
    (node, tag) => `Successfully tagged node '${node}' with a tag '${tag}'`,
  ),
  'DELETE /resources/node/tag/{tag}': changeTag(untagNode, (node) => `Successfully untagged node '${node}'`),
}

const setCertificate: LegacyHandler = async (context) => {
  await context.run(uploadCertificate, { body: context.fields as unknown as CertificateUpload })
  return { message: 'Successfully set certificate' }
}

const logIn: LegacyHandler = async ({ fields, request, services: { localIssuer, tokens } }) => {
  if (!localIssuer)
    throw new ApiError('Gone', 'POST /token: only the identity provider knows passwords', {
      hint: 'Get a token with svc3 user get-token or svc3 serviceaccount token',
    })
  const { email, password } = readLegacyFields(fields, { email: text, password: text }, ['email', 'password'])
  const user = await localIssuer.authenticate(email, password, request.ip)
  const { token } = await tokens.issue(user)
  return { message: `Authentication successful`, token }
}

/** Jenkins checks this version before its first call. */
const checkHealth: LegacyHandler = () => ({ api_version: '2.4.0' })

/** Calls that need no token. */
export const openCalls = new Set(['POST /token', 'GET /health-check'])

export const legacyHandlers = (services: { readonly collections: Collections }): LegacyHandlers => ({
  ...vmCalls,
  ...deployCalls,
  ...nodeCalls,
  ...imageCalls(services),
  'POST /resources/cert/set': setCertificate,
  'POST /token': logIn,
  'GET /health-check': checkHealth,
})
