// What images and ISOs may be called (docs/spec.md R22), with their extension. Names are keys of records: paths are
// made of digests, never of these.

export const imageNameRule = 'use at most 63 lowercase letters, digits, dashes and periods; do not start with a period'

const form = /^[a-z0-9-][a-z0-9.-]*$/

export const isImageName = (name: string): boolean => name.length <= 63 && form.test(name)

/** What a file is called when nobody says another name: its own, without the folders that some clients send along. */
export const nameOfFile = (file: string): string =>
  file.slice(Math.max(file.lastIndexOf('/'), file.lastIndexOf('\\')) + 1)
