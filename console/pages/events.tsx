// To come.
export const Events = () => null
