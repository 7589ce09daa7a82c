// Rates of data, and numbers with at most one decimal.
import { sizeText } from '../../src/rules/sizes.ts'
import { texts } from '../texts.ts'

export const rateText = (bytesPerSecond: number): string => texts.common.perSecond(sizeText(bytesPerSecond))

export const oneDecimal = (value: number): string => String(Number(value.toFixed(1)))
