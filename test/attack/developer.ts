// Doors of a developer, who has a role in one namespace.
import type { Doors } from './suite.ts'
import { others, startTarget, type Target, team } from './target.ts'

const kubernetes = ({ kubernetesUrl }: Target, namespace = team): string =>
  `${kubernetesUrl}/apis/orka.macstadium.com/v1/namespaces/${namespace.replace('svc-', 'orka-')}/virtualmachineconfigs`
const rest = ({ apiUrl }: Target, namespace = team): string => `${apiUrl}/api/v1/namespaces/${namespace}`

const configOf = (name: string, metadata: object = {}) => ({
  apiVersion: 'orka.macstadium.com/v1',
  kind: 'VirtualMachineConfig',
  metadata: { name, ...metadata },
  spec: { image: 'any', cpu: 2 },
})

const numbered = (count: number, of: (index: number) => unknown): Record<string, unknown> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, of(index)]))

export const developer: Doors<Target> = {
  start: startTarget,
  doors: [
    {
      name: 'developer: 80,000 labels in one object',
      attack: async (attacker, target) => {
        const { developer: token } = target.tokens
        const labels = numbered(80_000, () => '')
        const body = JSON.stringify(configOf('labels', { labels })).slice(0, 1_048_576)
        for (let count = 0; count < 3; count++) await attacker.call('POST', kubernetes(target), { token, body })
        await attacker.call('GET', `${rest(target, others)}/vmconfigs`, { token })
      },
    },
  ],
}
