// Valid names of images and ISOs, with their extension (docs/spec.md R22). They are keys of records; paths are made
// from digests only.

export const imageNameRule = 'use at most 63 lowercase letters, digits, dashes and periods'

const form = /^[a-z0-9.-]{1,63}$/

/** Clients remove the segments `.` and `..` from a URL, so an image of such a name would be out of reach. */
export const isImageName = (name: string): boolean => form.test(name) && name !== '.' && name !== '..'

/** The default name of an uploaded file, without the folders that some clients send. */
export const nameOfFile = (file: string): string =>
  file.slice(Math.max(file.lastIndexOf('/'), file.lastIndexOf('\\')) + 1)
