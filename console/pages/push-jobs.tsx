// To come.
export const PushJobs = () => null
