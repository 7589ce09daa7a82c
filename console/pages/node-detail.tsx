// To come.
export const NodeDetail = () => null
