// The access commands against a real API: give a user and a CI system access to a namespace, and remove it again.
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { run } from '../../test/support/rigs/cli-host.ts'
import { startService, type TestService } from '../../test/support/rigs/service.ts'

let service: TestService
before(async () => {
  service = await startService()
  await service.listen()
})
after(() => service[Symbol.asyncDispose]())

const svc3 = (line: string, token = service.adminToken) =>
  run(line.split(' '), { env: { SVC3_API_URL: service.apiUrl, SVC3_TOKEN: token } })

const keptSince = /^svc3: All events since \d{4}-\d\d-\d\dT[\d:]+Z are kept\n$/

/** Each line: the command, its exit code, its output and its notes. */
const steps: readonly (readonly [string, number, RegExp, RegExp?])[] = [
  ['namespace create svc-ios', 0, /^Namespace svc-ios created\.\n$/],
  ['ns create svc-ios', 6, /^$/, /Namespace svc-ios already exists/],
  ['ns create ios', 2, /^$/, /Invalid namespace name "ios"\n.*Start with svc-/],
  ['ns list svc-ios -o wide', 0, /^NAME\tCUSTOM-PODS\tCREATED\nsvc-ios\tfalse\t2026-11-15T09:00:00Z\n$/],
  ['ns list orka-ios', 0, /^NAME\norka-ios\n$/],
  ['ns create orka-tv', 0, /^Namespace orka-tv created\.\n$/],
  ['ns list', 0, /^NAME\nsvc-default\nsvc-ios\norka-tv\n$/],
  ['ns list svc-tv orka-tv', 0, /^NAME\nsvc-tv\n$/],
  ['sa create ci -n orka-tv', 0, /^Service account ci created in namespace orka-tv\.\n$/],
  ['rb add-subject -s orka-tv:ci -n svc-ios', 0, /^Subjects added/],
  ['rb list-subjects -n orka-ios', 0, /ServiceAccount\tci\torka-tv\n$/],
  ['rb remove-subject -s svc-tv:ci -n svc-ios', 0, /^Subjects removed/],
  ['ns delete svc-tv', 0, /^Namespace svc-tv deleted\.\n$/],
  ['ns list svc-nowhere', 5, /^$/, /Namespace svc-nowhere not found/],
  ['serviceaccount create jenkins -n svc-ios', 0, /^Service account jenkins created in namespace svc-ios\.\n$/],
  ['sa create jenkins -n svc-ios', 6, /^$/, /already exists/],
  ['sa list -n svc-ios', 0, /^NAME\tCREATED\tROLE\njenkins\t\S+\tdeveloper\n/],
  ['sa set-role jenkins -n svc-ios', 2, /^$/, /--role/],
  ['sa set-role jenkins -n svc-ios --role owner', 2, /^$/, /--role/],
  ['sa set-role jenkins -n svc-ios --role developer --allow registrycredentials', 2, /^$/, /Only an administrator/],
  [
    'sa set-role jenkins -n svc-ios --role administrator --allow registrycredentials',
    0,
    /^Role of service account jenkins in namespace svc-ios: administrator, registrycredentials\.\n$/,
  ],
  ['sa list -n svc-ios', 0, /\tadministrator, registrycredentials\n$/],
  ['sa set-role jenkins -n svc-ios --role developer', 0, /: developer\.\n$/],
  ['sa token jenkins -n svc-ios', 0, /^[\w-]+\.[\w-]+\.[\w-]+\n$/],
  ['sa token jenkins -n svc-ios --duration 30d -o json', 0, /"expiresAt": "2026-12-15T09:00:00Z"/],
  ['sa token jenkins -n svc-ios --no-expiration -o json', 0, /"expiresAt": null/],
  ['sa token jenkins -n svc-ios --duration soon', 2, /^$/, /Invalid --duration "soon"/],
  ['sa token jenkins -n svc-ios --duration 1h --no-expiration', 2, /^$/, /Use either --duration or --no-expiration/],
  ['sa token nobody -n svc-ios', 5, /^$/, /Service account nobody not found in svc-ios/],
  ['rolebinding add-subject -u Ana@example.com,bo@example.com -s svc-ios:jenkins -n svc-default', 0, /^Subjects added/],
  ['rb list-subjects', 0, /User\tana@example\.com\t\nUser\tbo@example\.com\t\nServiceAccount\tjenkins\tsvc-ios\n$/],
  ['rb remove-subject -u bo@example.com', 0, /^Subjects removed/],
  [
    'rb remove-subject -u bo@example.com -n svc-ios',
    5,
    /^$/,
    /User bo@example\.com not found in role svc-dev of svc-ios\n/,
  ],
  ['rb remove-subject -s svc-tv:ci', 5, /^$/, /Service account svc-tv:ci not found in role svc-dev of svc-default\n/],
  ['rb add-subject -u bo@example.com -n svc-ios', 0, /^Subjects added/],
  [
    'rb remove-subject -u BO@example.com,cy@example.com -n svc-ios',
    5,
    /^Subjects removed/,
    /User cy@example\.com not found/,
  ],
  ['rb list-subjects -n svc-ios', 0, /^KIND\tNAME\tNAMESPACE\nServiceAccount\tjenkins\tsvc-ios\n$/],
  ['rb add-subject -u ana@example.com -o=json', 0, /^\[\n {2}\{\n {4}"kind": "User",\n {4}"name": "ana@example\.com"/],
  ['rb add-subject -u nobody', 2, /^$/, /"nobody" is not an email address/],
  ['rb add-subject -s jenkins', 2, /^$/, /NAMESPACE:NAME/],
  ['rb add-subject', 2, /^$/, /No subjects specified/],
  [
    'events --for serviceaccount/jenkins -n svc-ios',
    0,
    /CreateServiceAccount\tservice-accounts\/jenkins\tadmin@example\.com\tadmin@example\.com created service account jenkins\n/,
    keptSince,
  ],
  ['events --for jenkins', 2, /^$/, /KIND\/NAME/],
  ['sa delete jenkins -n svc-ios', 0, /^Service account jenkins deleted/],
  ['sa delete jenkins -n svc-ios', 5, /^$/, /not found/],
  ['ns delete svc-ios', 0, /^Namespace svc-ios deleted\.\n$/],
  ['events', 0, /^AT\tREASON\tINVOLVED\tACTOR\tMESSAGE\n/, keptSince],
  ['events --jsonl', 0, /^\{"name":.*\}\n$/s, keptSince],
  ['events --quiet', 0, /^AT\t/],
  [
    'events -o wide',
    0,
    /\tCreateServiceAccount\t.*\tsvc-ios\tadmin@example\.com created service account jenkins\n/,
    keptSince,
  ],
  ['ns delete svc-default', 2, /^$/, /default namespace/],
]

describe('access commands', () => {
  for (const [line, exitCode, stdout, stderr = /^$/] of steps) {
    it(`svc3 ${line}: exit ${exitCode}`, async () => {
      const ran = await svc3(line)
      assert.equal(ran.exitCode, exitCode, ran.stderr)
      assert.match(ran.stdout, stdout)
      assert.match(ran.stderr, stderr)
    })
  }

  it('svc3 whoami says whether a service account is an administrator', async () => {
    const account = '/api/v1/namespaces/svc-default/serviceaccounts/robot'
    await service.call('POST', account)
    const { token } = (await service.call('POST', `${account}/token`)).body
    const role = async () => /"role": "(\w+)"/.exec((await svc3('whoami -o json', token)).stdout)?.[1]
    assert.equal(await role(), 'developer')
    await service.call('PUT', `${account}/role`, { body: { role: 'administrator' } })
    assert.equal(await role(), 'administrator')
  })

  it('commands about access exit 4 for developers and 3 with a bad token', async () => {
    assert.equal((await svc3('ns create svc-x', service.devToken)).exitCode, 4)
    assert.equal((await svc3('sa list', service.devToken)).exitCode, 4)
    const stranger = await svc3('ns list', 'nonsense')
    assert.equal(stranger.exitCode, 3)
    assert.match(stranger.stderr, /Unauthorized/)
  })
})
