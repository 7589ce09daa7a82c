// To come.
export const ImageList = () => null
export const IsoList = () => null
