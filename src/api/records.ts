// Pieces that records of several kinds share.
import * as t from 'typebox'

export const ResourceVersion = t.String({ description: 'Changes with every change of the record' })
export const ExpectedVersion = t.Optional(
  t.String({ minLength: 1, maxLength: 32, description: 'Only when the record still has this resourceVersion' }),
)
export const Timestamp = t.String({ format: 'date-time', description: 'RFC 3339, UTC, seconds' })
