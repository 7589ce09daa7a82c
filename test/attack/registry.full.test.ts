// Doors of a registry, or of a folder of a web server, that the operator has named and that became hostile.
import assert from 'node:assert/strict'
import type http from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { type BadRegistry, reply, startBadRegistry } from '../support/stand-ins/bad-registry.ts'
import type { Attacker } from './attacker.ts'
import { hostileAnswers } from './hostile-answers.ts'
import { attackAll } from './suite.ts'
import { startTarget, type Target, team } from './target.ts'

interface RegistryTarget extends Target {
  readonly registry: BadRegistry
}

async function startWithRegistry(): Promise<RegistryTarget> {
  const registry = await startBadRegistry()
  const target = await startTarget({
    settings: {
      registries: { allowPrivate: true, allowLoopback: true },
      remotes: [
        { name: 'folder', url: `${registry.server}/folder/`, allowInsecure: true },
        { name: 'oci', url: `oci://127.0.0.1:${registry.port}/evil`, allowInsecure: true },
      ],
    },
  })
  const login = { server: registry.server, username: 'a', password: 'b', allowInsecure: true }
  await target.admin('POST', `/namespaces/${team}/secrets/registrycredentials/add`, login)
  const end = target[Symbol.asyncDispose]
  return {
    ...target,
    registry,
    [Symbol.asyncDispose]: async () => {
      await registry.close()
      await end()
    },
  }
}

/** Every request that makes the server talk to the registry. It is not waited for longer than a person would. */
async function provoke(attacker: Attacker, { apiUrl, tokens, registry: { port } }: RegistryTarget): Promise<void> {
  const namespace = `${apiUrl}/api/v1/namespaces/${team}`
  const token = tokens.developer
  const reference = `127.0.0.1:${port}/evil/image:latest`
  const pull = (kind: string, item: string, index: number): Promise<unknown> =>
    attacker.call('POST', `${namespace}/${kind}/${encodeURIComponent(item)}/pull`, { token, body: { name: `p${index}-${Math.random().toString(36).slice(2)}` } }) // biome-ignore format: one call
  const uses = [
    () => attacker.call('GET', `${namespace}/remoteimages`, { token }),
    () => attacker.call('GET', `${namespace}/remoteisos`, { token }),
    ...Array.from(
      { length: 6 },
      (_, index) => () => pull('remoteimages', index % 2 === 0 ? reference : 'folder/a', index),
    ),
    () => pull('remoteisos', 'folder/a', 9),
  ]
  await Promise.race([Promise.all(uses.map((use) => use())), sleep(2_500)])
}

attackAll<RegistryTarget>('registries', {
  start: startWithRegistry,
  doors: Object.entries(hostileAnswers).map(([what, misbehave]) => ({
    name: `registry: ${what}`,
    attack: async (attacker: Attacker, target: RegistryTarget) => {
      const hostile = target.registry
      const answers = new Set<http.ServerResponse>()
      hostile.bend = (seen, response, request) => {
        answers.add(response)
        request.resume()
        misbehave(response, seen.path, hostile.port)
        return true
      }
      for (let round = 0; round < (attacker.effort.isLong ? 20 : 1); round++) await provoke(attacker, target)
      assert.ok(answers.size > 0, 'the server has asked the registry')
      // The connections of this door end with it.
      hostile.bend = (_seen, response) => reply(response, 404)
      for (const answer of answers) answer.destroy()
    },
  })),
})
