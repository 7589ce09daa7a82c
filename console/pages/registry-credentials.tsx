// To come.
export const RegistryCredentials = () => null
