// Usage as CSV (RFC 4180). Cells that a spreadsheet would run as a formula are escaped.
import type { Usage } from './usage.ts'

const columns = ['day', 'namespace', 'owner', 'vms', 'vmHours', 'coreHours', 'queueSeconds'] as const

const cell = (value: string | number): string => {
  const text = typeof value === 'string' && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export const usageCsv = (items: readonly Usage[]): string =>
  [columns.join(','), ...items.map((item) => columns.map((column) => cell(item[column])).join(','))]
    .map((line) => `${line}\r\n`)
    .join('')
