// Columns of tables, as kubectl prints them.
import type { KubeObject, ObjectFields, PrinterColumn } from './kind.ts'
import { archLabel, creatorAnnotation } from './orka.ts'

/** Shows the field at a path of the object. */
export const column = (name: string, type: PrinterColumn['type'], path: string): PrinterColumn => ({
  name,
  type,
  description: path,
  cell: (object: KubeObject) =>
    path.split('.').reduce<unknown>((value, step) => (value as ObjectFields | undefined)?.[step], object),
})

/** Shown by `kubectl get -o wide` only. */
export const wide = (name: string, type: PrinterColumn['type'], path: string): PrinterColumn => ({
  ...column(name, type, path),
  isWide: true,
})

/** Shows text that is computed from the object. */
export const textColumn = (
  name: string,
  description: string,
  cell: (object: KubeObject) => string,
  isWide = false,
): PrinterColumn => ({ name, type: 'string', description, cell, isWide })

export const age = column('Age', 'date', 'metadata.creationTimestamp')

export const architecture = (name: string, isWide = false): PrinterColumn =>
  textColumn(name, 'arm64 or amd64', ({ metadata }) => metadata.labels[archLabel] ?? '', isWide)

export const owner = textColumn(
  'Owner',
  'Who created it',
  ({ metadata }) => metadata.annotations[creatorAnnotation] ?? '',
  true,
)
