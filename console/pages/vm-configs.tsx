// To come.
export const VmConfigs = () => null
