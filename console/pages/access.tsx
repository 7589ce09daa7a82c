// To come.
export const Access = () => null
