// Amounts of data in sentences: `2.9 KiB`, where tables and the API have `2.9K`.
import { roughSize } from '../../src/rules/sizes.ts'
import { texts } from '../texts.ts'

/** `412M` → `412 MiB` */
export const longSize = (short: string): string =>
  short.replace(/^([\d.]+)([KMGTP]?)$/, (_, value: string, prefix: string) => texts.units.bytes(value, prefix))

export const sizeText = (bytes: number): string => longSize(roughSize(bytes))
export const rateText = (bytesPerSecond: number): string => texts.common.perSecond(sizeText(bytesPerSecond))
