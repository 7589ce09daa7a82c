// Amounts and rates as text.
import { sizeText } from '../../src/rules/sizes.ts'

export const count = (amount: number, one: string, many: string): string => `${amount} ${amount === 1 ? one : many}`

export const rateText = (bytesPerSecond: number): string => `${sizeText(bytesPerSecond)}/s`

export const oneDecimal = (value: number): string => String(Number(value.toFixed(1)))
