// Recognises discs for the drive of a VM: ISO 9660, UDF, and installers in Apple's format.
import fs from 'node:fs/promises'
import { BadDiskError } from './qcow2/header.ts'

/** Each format, the offset of its signature, and the signature. */
const signs: readonly (readonly [string, number, string])[] = [
  ['ISO 9660', 0x8001, 'CD001'],
  ['UDF', 0x8001, 'BEA01'],
  ['Apple partition map', 0, 'ER'],
  ['GUID partition table', 512, 'EFI PART'],
  ['HFS+', 1_024, 'H+'],
  ['HFSX', 1_024, 'HX'],
  ['APFS', 32, 'NXSB'],
]
const headBytes = 0x8006

/** Throws BadDiskError for anything else. */
export async function checkDisc(file: string): Promise<void> {
  await using handle = await fs.open(file, 'r')
  const head = Buffer.alloc(headBytes)
  const { bytesRead } = await handle.read(head, 0, headBytes, 0)
  const text = head.toString('latin1', 0, bytesRead)
  if (!signs.some(([, at, sign]) => text.startsWith(sign, at)))
    throw new BadDiskError('it is not a disc image (ISO 9660, UDF, or an installer of Apple)', 'ISO')
}
