// The Linux images that come with svc3, each for every architecture, such as `tiny-arm64`. Apart from the schemas, so that
// importing the names loads nothing else.
export const builtInImages = ['tiny', 'small'] as const
export type BuiltInImage = (typeof builtInImages)[number]
