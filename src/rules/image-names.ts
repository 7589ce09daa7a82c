// Valid names of images and ISOs, with their extension (docs/spec.md R22). They are keys of records; paths are made
// from digests only.

export const imageNameRule = 'use at most 63 lowercase letters, digits, dashes and periods; do not start with a period'

const form = /^[a-z0-9-][a-z0-9.-]*$/

export const isImageName = (name: string): boolean => name.length <= 63 && form.test(name)

/** The default name of an uploaded file, without the folders that some clients send. */
export const nameOfFile = (file: string): string =>
  file.slice(Math.max(file.lastIndexOf('/'), file.lastIndexOf('\\')) + 1)
