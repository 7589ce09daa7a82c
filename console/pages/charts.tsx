// To come.
export const Charts = () => null
