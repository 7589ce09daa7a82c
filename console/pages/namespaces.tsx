// To come.
export const NamespacesPage = () => null
