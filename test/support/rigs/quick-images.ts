// Images of guests that boot at once, for tests of the service.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import path from 'node:path'
import { powerButtonDisk } from '../guests/boot-disc.ts'
import { speakingDisk } from '../guests/efi-disks.ts'
import type { Architecture } from '../guests/guest.ts'
import { svc3 } from '../processes/dev-server.ts'

/** Printed on the serial console. The amd64 guest then reacts to its power button. */
export const quickWord = 'booted at once'

const disks = { amd64: powerButtonDisk, arm64: speakingDisk } satisfies Record<Architecture, unknown>
export const quickImage = (architecture: Architecture): string => `quick-${architecture}`

export async function uploadQuick(data: string, architecture: Architecture): Promise<void> {
  const file = path.join(data, 'quick.raw')
  await fs.writeFile(file, await disks[architecture](quickWord))
  const words = ['image', 'upload', file, '--name', quickImage(architecture), '--type', architecture]
  const { code, stderr } = await svc3(words, { env: { SVC3_DATA: data } })
  assert.equal(code, 0, stderr)
  await fs.rm(file)
}
