// To come.
export const NodeList = () => null
