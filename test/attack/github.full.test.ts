// Doors of a host that the runner pools of a namespace name as GitHub and that became hostile.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import type http from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { makeFolder } from '../support/processes/dev-server.ts'
import { type BadRegistry, reply, startBadRegistry } from '../support/stand-ins/bad-registry.ts'
import { makePair, type TestPair } from '../support/tools/certificates.ts'
import { eventually } from '../support/tools/eventually.ts'
import type { Attacker } from './attacker.ts'
import { hostileAnswers } from './hostile-answers.ts'
import { attackAll } from './suite.ts'
import { startTarget, type Target, team } from './target.ts'

interface GitHubTarget extends Target {
  readonly github: BadRegistry
  /** A host with TLS that the server trusts, and what it answers to requests for the address of the Actions service. */
  readonly secure: { readonly url: string; answer: (response: http.ServerResponse) => void }
}

async function startWithGitHub(): Promise<GitHubTarget> {
  const github = await startBadRegistry()
  const pair = await makePair()
  const secure: GitHubTarget['secure'] = await startSecure(pair)
  const folder = await makeFolder()
  const ca = path.join(folder, 'ca.pem')
  await fs.writeFile(ca, pair.cert)
  const target = await startTarget({ env: { NODE_EXTRA_CA_CERTS: ca } })
  await target.admin('POST', `/namespaces/${team}/vmconfigs`, { name: 'small', image: 'any', cpu: 1 })
  const end = target[Symbol.asyncDispose]
  return {
    ...target,
    github,
    secure,
    [Symbol.asyncDispose]: async () => {
      await github.close()
      await end()
      await fs.rm(folder, { recursive: true })
    },
  }
}

async function startSecure(pair: TestPair) {
  const server = https.createServer(pair, (request, response) => {
    request.resume()
    if (!request.url?.endsWith('/runner-registration')) return say(response, 201, { token: 't' })
    secure.answer(response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const secure = {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answer: (_: http.ServerResponse): void => undefined,
  }
  // It ends with the process.
  server.unref()
  return secure
}

function say(response: http.ServerResponse, status: number, body: object): true {
  return reply(response, status, { 'content-type': 'application/json' }, Buffer.from(JSON.stringify(body)))
}

const actionsToken = `e30.${Buffer.from(JSON.stringify({ exp: 4_000_000_000 })).toString('base64url')}.e30`

/** Answers the first requests of a pool as GitHub does, so that the hostile ones are about sessions and jobs. */
function behave(url: string, response: http.ServerResponse, address: string): boolean {
  if (url.endsWith('/registration-token')) return say(response, 201, { token: 't' })
  if (url.endsWith('/runner-registration')) return say(response, 200, { url: address, token: actionsToken })
  return false
}

/** How a host leads the server to an address on its loopback, and why the server does not go there. */
const detours: Readonly<Record<string, readonly [(response: http.ServerResponse, address: string) => void, RegExp]>> = {
  'an address': [(response, url) => say(response, 200, { url, token: actionsToken }), /an address without TLS/],
  'a redirect': [(response, location) => reply(response, 307, { location }), /answered 307/],
}

async function leadTo(target: GitHubTarget, name: string, detour: keyof typeof detours): Promise<void> {
  const [answer, refusal] = detours[detour] ?? assert.fail()
  const { github: victim, secure } = target
  const requests = victim.seen.length
  secure.answer = (response) => answer(response, `${victim.server}/`)
  const pools = `/namespaces/${team}/runnerpools`
  await target.admin('POST', pools, { name, url: `${secure.url}/acme`, config: 'small', credential: { token: 'x' } })
  await eventually(async () => {
    const { condition } = await target.admin('GET', `${pools}/${name}`)
    assert.match(condition.message, refusal)
  }, 60_000)
  assert.equal(victim.seen.length, requests, 'nothing was sent to the loopback')
  await target.admin('DELETE', `${pools}/${name}`)
}

attackAll<GitHubTarget>('hosts of runner pools', {
  start: startWithGitHub,
  doors: [
    ...Object.keys(detours).map((detour, index) => ({
      name: `GitHub: ${detour} on the loopback of the server`,
      attack: (_: Attacker, target: GitHubTarget) => leadTo(target, `d${index}`, detour),
    })),
    ...Object.entries(hostileAnswers).map(([what, misbehave], index) => ({
      name: `GitHub: ${what}`,
      attack: async (attacker: Attacker, target: GitHubTarget) => {
        const { apiUrl, tokens, github: hostile } = target
        const pools = `/namespaces/${team}/runnerpools`
        const answers = new Set<http.ServerResponse>()
        hostile.bend = ({ path: url }, response, request) => {
          request.resume()
          if (behave(url, response, hostile.server)) return true
          answers.add(response)
          misbehave(response, url, hostile.port)
          return true
        }
        const credential = { token: 'of-github' }
        const pool = { name: `p${index}`, url: `${hostile.server}/acme`, config: 'small', credential }
        await target.admin('POST', pools, pool)
        await sleep(attacker.times(1_500))
        for (const where of [`${pools}/${pool.name}`, `/namespaces/${team}/runnerjobs`])
          assert.equal((await attacker.call('GET', `${apiUrl}/api/v1${where}`, { token: tokens.other })).status, 403)
        assert.ok(answers.size > 0, 'the pool has asked for jobs')
        assert.ok(!target.output().includes(credential.token), 'the credential is not logged')
        hostile.bend = (_seen, response) => reply(response, 404)
        for (const answer of answers) answer.destroy()
        await target.admin('DELETE', `${pools}/${pool.name}`)
      },
    })),
  ],
})
