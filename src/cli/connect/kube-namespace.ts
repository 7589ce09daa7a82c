// Kubeconfigs. Orka 3.5 and later take their default namespace from the context `orka` in one. Only callers of `orka3` get it,
// because svc3 has contexts of its own.
import os from 'node:os'
import path from 'node:path'
import { readFileIfPresent } from '../../platform/files.ts'
import type { Host } from '../host.ts'
import { type Fields, fieldsOf, textField } from './connection.ts'
import { homeOf } from './folders.ts'

/** The first file of KUBECONFIG, as in kubectl. */
export function kubeconfigFile(host: Host): string {
  const [first] = (host.env.KUBECONFIG ?? '').split(path.delimiter).filter((each) => each !== '')
  return path.resolve(host.workingDir, first ?? path.join(homeOf(host) || os.homedir(), '.kube', 'config'))
}

/** Returns the fields of a YAML object; undefined for any other text. */
export async function fieldsInYaml(text: string): Promise<Fields | undefined> {
  const { parse } = await import('yaml')
  try {
    return fieldsOf(parse(text) ?? {})
  } catch {
    return undefined
  }
}

/** Ignores a file that cannot be read, because it is not svc3's. */
export async function readKubeNamespace(host: Host): Promise<{ namespace?: string | undefined; file: string }> {
  const file = kubeconfigFile(host)
  const text = host.calledAs === 'orka3' ? await readFileIfPresent(file).catch(() => undefined) : undefined
  const contexts = text?.includes('orka') && (await fieldsInYaml(text))?.contexts
  const orka = Array.isArray(contexts) ? contexts.map(fieldsOf).find((each) => each?.name === 'orka') : undefined
  return { namespace: textField(fieldsOf(orka?.context)?.namespace), file }
}
