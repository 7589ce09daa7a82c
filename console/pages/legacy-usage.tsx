// To come.
export const LegacyUsagePage = () => null
