// VMs for the real hypervisor without a guest: a blank disk, and for arm64 a kernel of two instructions that sleeps,
// where the firmware would be busy for seconds.
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Architecture } from '../../src/api/architecture.ts'
import type { BaseImage, Handle } from '../../src/drivers/driver.ts'
import { runtimeFolder } from '../../src/drivers/qemu/control/run.ts'
import { activeOf, requireChain } from '../../src/drivers/qemu/disks/chain.ts'
import { argumentsOf, findByArgument, startTimeOf } from '../../src/platform/processes.ts'

/** wfi; b .-4 */
export const sleeper = Buffer.from('7f2003d5ffffff17', 'hex')

export async function blankImage(architecture: Architecture, folder: string, digest: string): Promise<BaseImage> {
  const disk = path.join(folder, `${digest.replace(/\W/g, '-')}.raw`)
  await fs.writeFile(disk, '')
  await fs.truncate(disk, 64 * 2 ** 20)
  const kernel = path.join(folder, 'sleeper')
  if (architecture === 'arm64') await fs.writeFile(kernel, sleeper)
  return {
    name: 'blank',
    digest,
    disk,
    format: 'raw',
    virtualSizeBytes: 64 * 2 ** 20,
    boot: architecture === 'arm64' ? { kind: 'kernel', kernel, commandLine: '' } : { kind: 'firmware' },
  }
}

/** Everything alive that belongs to a VM: its QEMU, its supervisor, its uplink. */
export async function processesOf({ folder }: Handle): Promise<readonly { pid: number; program: string }[]> {
  const found = []
  for (const pid of await findByArgument(runtimeFolder(folder))) {
    const [program = ''] = await argumentsOf(pid)
    if ((await startTimeOf(pid)) !== undefined) found.push({ pid, program: path.basename(program) })
  }
  return found
}

export async function qemusOf(handle: Handle): Promise<readonly number[]> {
  return (await processesOf(handle)).filter(({ program }) => program.startsWith('qemu-system-')).map(({ pid }) => pid)
}

/** Where a stopped VM's guest writes. */
export const activeDisk = async ({ folder }: Pick<Handle, 'folder'>): Promise<string> =>
  path.join(folder, activeOf(await requireChain(folder)).file)

export async function killQemu(handle: Handle): Promise<void> {
  for (const pid of await qemusOf(handle)) process.kill(pid, 'SIGKILL')
}

export async function tracesOf(handle: Handle): Promise<readonly string[]> {
  const runtime = runtimeFolder(handle.folder)
  const isThere = await fs.access(runtime).then(
    () => true,
    () => false,
  )
  return [...(isThere ? [runtime] : []), ...(await processesOf(handle)).map(({ pid, program }) => `${program} ${pid}`)]
}
