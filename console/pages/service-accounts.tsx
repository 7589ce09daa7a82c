// To come.
export const ServiceAccounts = () => null
