// To come.
export const ImageDetail = () => null
export const IsoDetail = () => null
