// Schemas that records of several kinds share.
import * as t from 'typebox'
import { architectures } from './architecture.ts'

export const ResourceVersion = t.String({ description: 'Changes with every change of the record' })
export const ExpectedVersion = t.Optional(
  t.String({ minLength: 1, maxLength: 32, description: 'Change only if the record still has this resourceVersion' }),
)
export const Timestamp = t.String({ format: 'date-time', description: 'RFC 3339, UTC, seconds' })

/** More precise than `Timestamp`, to compute durations. */
export const Moment = t.String({ format: 'date-time', description: 'RFC 3339, UTC, milliseconds' })

export const Architecture = t.Enum(architectures, { description: 'arm64: Apple silicon. amd64: Intel' })

export const Flag = (description: string) => t.Optional(t.Boolean({ description }))

/** The formats of images in registries: that of svc3, and that of tart. */
export const pushFormats = ['svc3', 'tart'] as const
export type PushFormat = (typeof pushFormats)[number]
