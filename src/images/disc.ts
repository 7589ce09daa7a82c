// Whether a file is a disc that a VM can have in its drive: ISO 9660, UDF, or an installer as Apple's tools write it, by the
// bytes that say so. Everything else in it is the guest's to read.
import fs from 'node:fs/promises'
import { BadDiskError } from './qcow2/header.ts'

/** What, where it says so, and how. */
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

/** Throws BadDiskError for what is none. */
export async function checkDisc(file: string): Promise<void> {
  await using handle = await fs.open(file, 'r')
  const head = Buffer.alloc(headBytes)
  const { bytesRead } = await handle.read(head, 0, headBytes, 0)
  const text = head.toString('latin1', 0, bytesRead)
  if (!signs.some(([, at, sign]) => text.startsWith(sign, at)))
    throw new BadDiskError('it is not a disc image (ISO 9660, UDF, or an installer of Apple)', 'ISO')
}
