// The Linux images that come with svc3, each for every architecture, such as `tiny-arm64`. In a file without schemas, so
// that importing them loads nothing else.
export const builtInImages = ['tiny', 'small'] as const
export type BuiltInImage = (typeof builtInImages)[number]
