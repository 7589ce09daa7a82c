// Usage as a table for spreadsheets: RFC 4180, and no cell that one of them would run as a formula.
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
