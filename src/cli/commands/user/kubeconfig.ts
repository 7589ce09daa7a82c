// svc3 user kubeconfig: makes a kubeconfig for the Kubernetes API of the server. It contains no token; kubectl runs `svc3
// user get-token`.

import fs from 'node:fs/promises'
import path from 'node:path'
import type { JsonObject } from '../../../api/json.ts'
import { getClusterInfo } from '../../../api/service/service.ts'
import { readFileIfPresent, writeFileAtomically } from '../../../platform/files.ts'
import { defineCommand, namespaced } from '../../command.ts'
import { dataDir, type ServerConnection } from '../../connect/connection.ts'
import { fieldsInYaml, kubeconfigFile } from '../../connect/kube-namespace.ts'
import type { Host } from '../../host.ts'
import { Failure } from '../../line/usage.ts'

export const command = defineCommand({
  description:
    'Prints a kubeconfig for kubectl and other Kubernetes clients. It holds no token: kubectl asks svc3 user get-token for one,\nwhich renews it.',
  arguments: {},
  options: {
    merge: { type: 'boolean', description: 'Add it to $KUBECONFIG or ~/.kube/config and make it current' },
    ...namespaced,
  },
  examples: [
    { line: 'svc3 user kubeconfig --merge', does: 'Let kubectl use this server' },
    { line: 'svc3 user kubeconfig > kubeconfig.yaml', does: 'Write a file for one job' },
  ],
  async run(context, { options }) {
    const { host } = context
    const connection = await context.connection()
    const { client, namespace, apiUrl } = await context.connect()
    const info = await client.call(getClusterInfo, { signal: context.signal })
    if (info.certData === '' || new URL(info.apiEndpoint).origin === new URL(apiUrl).origin)
      throw new Failure(
        `The Kubernetes API of ${apiUrl} is closed`,
        'Start the server with --kubernetes-listen HOST:PORT',
      )
    const name = connection.context ?? 'svc3'
    const made = kubeconfig({
      name,
      server: info.apiEndpoint,
      certificate: info.certData,
      namespace,
      exec: execOf(host, connection),
    })
    const { stringify } = await import('yaml')
    if (!options.merge) {
      host.stdout.write(stringify(made, { lineWidth: 0 }))
      return 0
    }
    const file = kubeconfigFile(host)
    const known = await fieldsInYaml((await readFileIfPresent(file)) ?? '')
    if (!known) throw new Failure(`${file} is not a kubeconfig`, 'Move it away, or set KUBECONFIG')
    await fs.mkdir(path.dirname(file), { recursive: true, mode: 0o700 })
    await writeFileAtomically(file, stringify(merged(known, made), { lineWidth: 0 }), { mode: 0o600 })
    host.stdout.write(`Context ${name} added to ${file}. Try: kubectl get vms\n`)
  },
})

interface KubeconfigInput {
  readonly name: string
  readonly server: string
  readonly certificate: string
  readonly namespace: string
  readonly exec: JsonObject
}

const kubeconfig = ({ name, server, certificate, namespace, exec }: KubeconfigInput) => ({
  apiVersion: 'v1',
  kind: 'Config',
  clusters: [{ name, cluster: { server, 'certificate-authority-data': Buffer.from(certificate).toString('base64') } }],
  users: [{ name, user: { exec } }],
  contexts: [{ name, context: { cluster: name, user: name, namespace } }],
  'current-context': name,
})

/** Lets kubectl get tokens from this program, for the same server. */
function execOf(host: Host, { context, source, apiUrl }: ServerConnection): JsonObject {
  const isByContext = context !== undefined && !host.env.SVC3_API_URL && !host.env.SVC3_DATA
  const env = isByContext
    ? []
    : source === 'SVC3_API_URL'
      ? [{ name: 'SVC3_API_URL', value: apiUrl }]
      : [{ name: 'SVC3_DATA', value: dataDir(host) }]
  return {
    // kubectl 1.20 of Debian 12 does not know v1; later versions know both.
    apiVersion: 'client.authentication.k8s.io/v1beta1',
    command: path.join(host.checkout, 'bin', 'svc3'),
    args: ['user', 'get-token', '-o', 'exec-credential', ...(isByContext ? ['--context', context] : [])],
    env,
    interactiveMode: 'Never',
    provideClusterInfo: false,
  }
}

/** Replaces entries with the same name, and keeps all others. */
function merged(known: JsonObject, made: ReturnType<typeof kubeconfig>): JsonObject {
  const list = (field: 'clusters' | 'users' | 'contexts'): unknown[] => {
    const others = Array.isArray(known[field]) ? (known[field] as readonly { name?: unknown }[]) : []
    const names = new Set(made[field].map(({ name }) => name as unknown))
    return [...others.filter((each) => !names.has(each?.name)), ...made[field]]
  }
  return { ...known, ...made, clusters: list('clusters'), users: list('users'), contexts: list('contexts') }
}
