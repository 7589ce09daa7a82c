// Doors of a host that the runner pools of a namespace name as GitHub and that became hostile.
import assert from 'node:assert/strict'
import type http from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { type BadRegistry, reply, startBadRegistry } from '../support/stand-ins/bad-registry.ts'
import type { Attacker } from './attacker.ts'
import { manners } from './hostile-answers.ts'
import type { Doors } from './suite.ts'
import { startTarget, type Target, team } from './target.ts'

interface GitHubTarget extends Target {
  readonly github: BadRegistry
}

async function startWithGitHub(): Promise<GitHubTarget> {
  const github = await startBadRegistry()
  const target = await startTarget()
  await target.admin('POST', `/namespaces/${team}/vmconfigs`, { name: 'small', image: 'any', cpu: 1 })
  const end = target[Symbol.asyncDispose]
  return {
    ...target,
    github,
    [Symbol.asyncDispose]: async () => {
      await github.close()
      await end()
    },
  }
}

/** Answers the first requests of a pool as GitHub does, so that the hostile ones are about sessions and jobs. */
function behave(path: string, response: http.ServerResponse, address: string): boolean {
  const json = { 'content-type': 'application/json' }
  const say = (status: number, body: object): true => {
    reply(response, status, json, Buffer.from(JSON.stringify(body)))
    return true
  }
  const claims = Buffer.from(JSON.stringify({ exp: 4_000_000_000 })).toString('base64url')
  if (path.endsWith('/registration-token')) return say(201, { token: 't', expires_at: '2099-01-01T00:00:00Z' })
  if (path.endsWith('/runner-registration')) return say(200, { url: address, token: `e30.${claims}.e30` })
  return false
}

export const github: Doors<GitHubTarget> = {
  start: startWithGitHub,
  doors: Object.entries(manners).map(([what, misbehave], index) => ({
    name: `GitHub: ${what}`,
    attack: async (attacker: Attacker, target: GitHubTarget) => {
      const { apiUrl, tokens, github: hostile } = target
      const pools = `/namespaces/${team}/runnerpools`
      const answers = new Set<http.ServerResponse>()
      hostile.bend = ({ path }, response, request) => {
        request.resume()
        if (behave(path, response, hostile.server)) return true
        answers.add(response)
        misbehave(response, path, hostile.port)
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
}
