// The firmware that boots a disk: SeaBIOS, which comes with QEMU, or UEFI, of whose variables each VM has a copy.
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Architecture } from '../../api/architecture.ts'
import { succeeds } from '../../platform/succeeds.ts'
import { HostUnfit } from '../driver.ts'

type FirmwareKind = 'bios' | 'uefi'

export const defaultFirmware: Readonly<Record<Architecture, FirmwareKind>> = { amd64: 'bios', arm64: 'uefi' }

/** Relative to the VM's folder. */
export const variablesFile = 'firmware-variables.fd'

interface UefiFiles {
  readonly code: string
  readonly variables: string
}

/** Debian and derivatives, Fedora, Homebrew: the first existing pair is used. */
const uefi: Readonly<Record<Architecture, { readonly debianPackage: string; readonly places: readonly UefiFiles[] }>> =
  {
    amd64: {
      debianPackage: 'ovmf',
      places: [
        { code: '/usr/share/OVMF/OVMF_CODE_4M.fd', variables: '/usr/share/OVMF/OVMF_VARS_4M.fd' },
        { code: '/usr/share/OVMF/OVMF_CODE.fd', variables: '/usr/share/OVMF/OVMF_VARS.fd' },
        { code: '/usr/share/edk2/ovmf/OVMF_CODE.fd', variables: '/usr/share/edk2/ovmf/OVMF_VARS.fd' },
        ...homebrew('edk2-x86_64-code.fd', 'edk2-i386-vars.fd'),
      ],
    },
    arm64: {
      debianPackage: 'qemu-efi-aarch64',
      places: [
        { code: '/usr/share/AAVMF/AAVMF_CODE.fd', variables: '/usr/share/AAVMF/AAVMF_VARS.fd' },
        ...homebrew('edk2-aarch64-code.fd', 'edk2-arm-vars.fd'),
      ],
    },
  }

function homebrew(code: string, variables: string): readonly UefiFiles[] {
  return ['/opt/homebrew/share/qemu', '/usr/local/share/qemu'].map((folder) => ({
    code: path.join(folder, code),
    variables: path.join(folder, variables),
  }))
}

/** Returns the path of the code. The VM's variables are copied to its folder unless an earlier start did so. */
export async function prepareUefi(architecture: Architecture, folder: string): Promise<string> {
  const files = await findUefi(architecture)
  if (!files) {
    const { debianPackage } = uefi[architecture]
    throw new HostUnfit(
      `UEFI firmware for ${architecture} is not installed on this host: run 'apt-get install ${debianPackage}' (Debian)`,
    )
  }
  const own = path.join(folder, variablesFile)
  const found = await fs.stat(own).catch(() => undefined)
  // A host that lost power right after the copy may have an empty file, because the copy is not synced.
  if (!found?.size) {
    await fs.copyFile(files.variables, `${own}.tmp`, fs.constants.COPYFILE_FICLONE)
    await fs.chmod(`${own}.tmp`, 0o600)
    await fs.rename(`${own}.tmp`, own)
  }
  return files.code
}

export async function findUefi(architecture: Architecture): Promise<UefiFiles | undefined> {
  for (const files of uefi[architecture].places) {
    if (await succeeds(Promise.all([fs.access(files.code), fs.access(files.variables)]))) return files
  }
  return undefined
}
