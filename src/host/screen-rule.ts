// Whether the pf rule of `svc3 agent install` is loaded, which closes the screens of VMs on a Mac to other hosts.
import { readFileIfPresent } from '../platform/files.ts'
import { hostBootId } from '../platform/processes.ts'

/** Written by root when the rule is loaded. The file names the boot of the host, because a boot unloads the rule. */
export const screenRuleFile = '/var/run/io.svc3.agent.screens'

export async function isScreenRuleLoaded(file = screenRuleFile): Promise<boolean> {
  const text = await readFileIfPresent(file).catch(() => undefined)
  return text?.split('\n', 1)[0] === (await hostBootId())
}
