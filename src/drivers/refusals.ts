// Errors for users that several drivers share.
import type { BaseImage } from './driver.ts'

/** For a VM whose image has changed: it must not start, because its layers fit only the image they were made on. */
export const otherImage = ({ name, digest }: Pick<BaseImage, 'name' | 'digest'>, base: string): Error =>
  new Error(
    `the disk of this VM was made from another content of image ${name} (${base}) than the one on this node (${digest}); ` +
      'revert the VM, or restore the image',
  )

export const cannotShrink = (nowBytes: number, wantedBytes: number): Error =>
  new Error(`the disk already has ${nowBytes} bytes and cannot shrink to ${wantedBytes}`)

export const mustBeStopped = (): Error => new Error('the VM is running; stop it first')

export const missingCopy = ({ name, disk }: Pick<BaseImage, 'name' | 'disk'>): Error =>
  new Error(`the copy of image ${name} is missing on this node (${disk}); it has to be fetched again`)

export const notCapturable = (): Error => new Error('there is no VM to capture')

export function requireDistinct(ports: readonly { readonly protocol: string; readonly port: number }[]): void {
  const texts = ports.map(({ protocol, port }) => `${port}/${protocol}`)
  const twice = texts.find((text, index) => texts.indexOf(text) < index)
  if (twice !== undefined) throw new Error(`port ${twice} is requested twice by one VM`)
}

/** Rewords the error of a capture that failed because the disk is full. Returns other errors unchanged. */
export function explainFullDisk(error: unknown): unknown {
  const isFull = error instanceof Error && /ENOSPC|EDQUOT|No space left|Disk quota/i.test(error.message)
  if (!isFull) return error
  return new Error("the host's disk is full; the VM was not captured and keeps running. Free space and try again")
}
