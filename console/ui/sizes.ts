// Rates of data.
import { sizeText } from '../../src/rules/sizes.ts'
import { texts } from '../texts.ts'

export const rateText = (bytesPerSecond: number): string => texts.common.perSecond(sizeText(bytesPerSecond))
