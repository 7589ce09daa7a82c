// Kubeconfigs. Orka 3.5 and later take their default namespace from the context `orka` in one, and so do callers of `orka3`.

import os from 'node:os'
import path from 'node:path'
import type { JsonObject } from '../../api/json.ts'
import { readFileIfPresent } from '../../platform/files.ts'
import type { Host } from '../host.ts'
import { fieldsOf, type ServerConnection, textField } from './connection.ts'

/** The first file of KUBECONFIG, as in kubectl. */
export function kubeconfigFile(host: Host): string {
  const [first] = (host.env.KUBECONFIG ?? '').split(path.delimiter).filter((each) => each !== '')
  return path.resolve(host.workingDir, first ?? path.join(host.env.HOME || os.homedir(), '.kube', 'config'))
}

/** Returns the fields of a YAML object; undefined for any other text. */
export async function fieldsInYaml(text: string): Promise<JsonObject | undefined> {
  const { parse } = await import('yaml')
  try {
    return fieldsOf(parse(text) ?? {})
  } catch {
    return undefined
  }
}

/** Ignores a file that cannot be read, because it is not svc3's. */
export async function kubeNamespace(host: Host): Promise<string | undefined> {
  if (host.calledAs !== 'orka3') return undefined
  const text = await readFileIfPresent(kubeconfigFile(host)).catch(() => undefined)
  const contexts = text?.includes('orka') && (await fieldsInYaml(text))?.contexts
  const orka = Array.isArray(contexts) ? contexts.map(fieldsOf).find((each) => each?.name === 'orka') : undefined
  return textField(fieldsOf(orka?.context)?.namespace)
}

export const withKubeNamespace = async (host: Host, connection: ServerConnection): Promise<ServerConnection> =>
  connection.namespace ? connection : { ...connection, namespace: await kubeNamespace(host) }
