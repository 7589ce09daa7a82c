// To come.
export const Screen = () => null
